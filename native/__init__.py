"""The compiled core: boards, rollouts, planes, the search tree. Arrays in, arrays out; knows no engine and no nets."""
