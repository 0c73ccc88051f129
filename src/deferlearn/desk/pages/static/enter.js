"use strict";
// The text of the link stands behind the sign #, so that no server on the way gets it.
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const waiting = document.getElementById("waiting");

function tell(text) {
  waiting.className = "problem";
  waiting.textContent = text;
}

async function enter() {
  try {
    const answer = await fetch("/api/v1/session/link", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (answer.ok) {
      location.replace("/");
    } else {
      tell((await answer.json()).detail);
    }
  } catch {
    tell("The desk does not answer. Try again later.");
  }
}

enter();
