"""Functions that only compiled code calls: they are compiled as far as their callers need it.

Without this module, numba makes machine code of each function, although a caller includes the code of the
functions that it calls, and optimises and compiles it as a part of its own. Half of the time in LLVM would
go into code that never runs. Here such functions are only translated for LLVM, and are compiled with their
callers.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _WithoutEnvironment:
    """A code generator for code that is not loaded, and so has no environment to set."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class LinkedLibrary(JITCodeLibrary):
    """Code for other libraries to include: neither optimised nor loaded."""

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _WithoutEnvironment(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """Nothing is loaded, so there is no address."""
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "lowering_for_callers"

    def run_pass(self, state: Any) -> bool:
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class LinkedCompiler(CompilerBase):
    """numba's compiler, up to the point where machine code would be made."""

    def define_pipelines(self) -> list[Any]:
        """The passes of numba, with another last one."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_Lowering if kind is NativeLowering else kind, about) for kind, about in passes.passes
        ]
        passes.finalize()
        return [passes]
