"""A notebook whose cells keep a portal, in a kernel of Jupyter."""

# nbformat has no types.
# mypy: disable-error-code="no-untyped-call"
# pyright: basic

import sys

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

CELLS = """
from sessionmgr import open_portal
portal = open_portal(store=STORE)
# %%
print("ask", portal.ask("shell", "printf hello").text)
# %%
run = portal.start("shell", "printf 'a b c'")
# %%
print("text", "".join(run.text()))
# %%
import asyncio
result = await asyncio.wrap_future(portal.submit("shell", "printf awaited"))
print("await", result.text)
# %%
try:
    portal.ask("shel", "ls")
except Exception as error:
    print("error", type(error).__name__)
# %%
hanging = portal.start(
    "shell",
    "sh -c 'echo $$; exec sleep 100000'",
    permission_mode="full_auto",
    options={"timeout": None},
)
print("run", hanging.id)
print("pid", next(hanging.text()))
""".replace("STORE", repr(sys.argv[1]))

cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS.split("# %%\n")]
notebook = nbformat.v4.new_notebook(cells=cells)
# The kernel ends by itself, however busy the machine is; it is not killed.
config = Config({"KernelManager": {"shutdown_wait_time": 480.0}})
NotebookClient(notebook, timeout=None, kernel_name="python3", config=config).execute()
for cell in notebook.cells:
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            print(output.text.strip())
