/* Buttons that copy a text which is shown only once. Without this script, it is selected and copied by hand. */
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  if (!source || !navigator.clipboard) continue;
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value);
      button.textContent = "Copied";
    } catch {
      source.select();
      button.textContent = "Selected: press Ctrl-C";
    }
    setTimeout(() => {
      button.textContent = label;
    }, 4000);
  });
}
