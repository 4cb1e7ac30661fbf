// A button that copies the text of a code block. Without this script, the text can be selected like any other.

const sayMs = 2000;

async function copyText(text, block) {
  // Only secure pages have a clipboard. Elsewhere the text is selected and copied by the browser's command.
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  getSelection().selectAllChildren(block);
  if (!document.execCommand("copy")) throw new Error("not copied");
}

for (const block of document.querySelectorAll("pre.copied")) {
  const button = document.createElement("button");
  const status = document.createElement("span");
  const row = document.createElement("p");
  button.type = "button";
  button.className = "slim quiet";
  button.textContent = "Copy";
  status.className = "small";
  status.setAttribute("role", "status");
  row.className = "copy-row";
  row.append(button, " ", status);
  block.after(row);
  button.addEventListener("click", async () => {
    status.textContent = await copyText(block.textContent, block.firstElementChild ?? block).then(
      () => "Copied",
      () => "Not copied: select the text and copy it",
    );
    setTimeout(() => status.replaceChildren(), sayMs);
  });
}
