"use strict";
// The invitation stands behind the sign #, so that no server on the way gets it.
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const message = document.getElementById("message");
const form = document.getElementById("form");

function tell(text) {
  const line = document.createElement("p");
  line.className = "problem";
  line.textContent = text;
  message.replaceChildren(line);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const password = document.getElementById("password").value;
  if (password !== document.getElementById("again").value) {
    tell("The two passwords differ.");
    return;
  }
  try {
    const answer = await fetch("/api/v1/invitations", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, password }),
    });
    if (answer.ok) {
      message.replaceChildren();
      form.remove();
      document.getElementById("done").hidden = false;
    } else {
      tell((await answer.json()).detail);
    }
  } catch {
    tell("The desk does not answer. Try again later.");
  }
});
