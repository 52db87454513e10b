"""The tables and pictures of the documents, a module for each subject; tools/documents.py draws them."""
