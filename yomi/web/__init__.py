"""`yomi serve`: play and analyse in the browser. The pages' boards are those of yomi/engine/pages."""
