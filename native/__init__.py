"""The compiled core: boards, rollouts, planes and the search tree. Arrays in, arrays out; knows nothing of engine or nets."""
