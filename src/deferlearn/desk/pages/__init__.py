"""The pages of the desk: rendered by the server, for the keyboard alone, for phones, light and dark."""

from fastapi import APIRouter, FastAPI, Request, Response


def routers() -> list[APIRouter]:
    """The pages, for experts, supervisors and administrators."""
    from deferlearn.desk.pages import (
        case_pages,
        entrance,
        expert_pages,
        export_pages,
        field_pages,
        import_pages,
        key_pages,
        log_pages,
        model_pages,
        monitoring_pages,
        rule_pages,
        static_files,
        today_pages,
        user_pages,
        work_pages,
    )

    modules = (
        static_files,
        entrance,
        work_pages,
        today_pages,
        monitoring_pages,
        case_pages,
        expert_pages,
        model_pages,
        import_pages,
        export_pages,
        user_pages,
        key_pages,
        field_pages,
        rule_pages,
        log_pages,
    )
    return [module.router for module in modules]


def install(app: FastAPI) -> None:
    """Let an app show its pages; an address that leads nowhere is told to browsers as a page.

    Parameters
    ----------
    app : FastAPI
        The app.
    """
    from deferlearn.desk.api.problems import problem
    from deferlearn.desk.pages.rendering import no_such_page

    for router in routers():
        app.include_router(router)

    @app.exception_handler(404)
    def nowhere(request: Request, error: Exception) -> Response:
        path = request.url.path
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and not path.startswith(("/api/", "/static/")):
            return no_such_page()
        return problem(404, str(getattr(error, "detail", "Not Found")))
