// Shows a running job's progress every two seconds. When the job has ended, the page is reloaded.
const panel = document.querySelector("[data-job]");
const everyMs = 2000;

function show({ progress }) {
  panel.querySelector(".job-text").textContent = progress.text;
  const bar = panel.querySelector("progress");
  if (progress.share === null) bar.removeAttribute("value");
  else bar.value = progress.share;
  const list = panel.querySelector(".job-lines");
  list.replaceChildren(
    ...progress.lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
  );
}

async function follow() {
  try {
    const answer = await fetch(`/api/registry/jobs/${panel.dataset.job}`, {
      headers: { accept: "application/json" },
    });
    if (answer.ok) {
      const job = await answer.json();
      if (job.state !== "running") return location.reload();
      show(job);
    }
  } catch {
    // The coordinator may be restarting, so it is asked again.
  }
  setTimeout(follow, everyMs);
}

if (panel) {
  panel.querySelector(".without-script")?.remove();
  setTimeout(follow, everyMs);
}
