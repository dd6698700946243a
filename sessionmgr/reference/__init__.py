"""The reference page, generated from the code: `python -m sessionmgr.reference`."""

from sessionmgr.reference.page import PATH as PATH, render as render
