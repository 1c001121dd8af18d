"""Playing on floodgate and other CSA servers."""
