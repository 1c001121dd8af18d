"""The compiled core: boards, rollouts, planes, the search tree. Knows neither engine nor nets."""
