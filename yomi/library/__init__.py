"""The classes and functions of `import yomi`."""
