"""Game records of shogi: CSA, KIF, USI, hcpe and PSV."""
