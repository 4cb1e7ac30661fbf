/**
 * The runbook's Markdown as HTML: paragraphs, lists, code, emphasis and links, which is what it uses. All else stays text, and all
 * text is escaped. Links to other files of the runbook become their names: the pages do not have them.
 */
import { type Html, html } from "../../../web/html.ts";

export function markdownHtml(markdown: string): Html {
  const blocks = markdown.split(/\n{2,}/).filter((block) => block.trim() !== "");
  return html`${blocks.map(block)}`;
}

function block(text: string): Html {
  if (/^ {4}/.test(text)) return html`<pre><code>${text.replace(/^ {4}/gm, "")}</code></pre>`;
  if (/^- /.test(text))
    return html`<ul>${text
      .split(/^- /m)
      .slice(1)
      .map((item) => html`<li>${inline(joined(item))}</li>`)}</ul>`;
  return html`<p>${inline(joined(text))}</p>`;
}

const joined = (text: string) => text.trim().replace(/\s*\n\s*/g, " ");

/** Code, links, bold, emphasis: in the order in which they begin. */
const marks =
  /`([^`]+)`|\[([^\]]+)\]\(([^)\s]+)\)|\*\*([^*]+)\*\*|(?<![\p{L}\p{N}*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\p{L}\p{N}*])/gu;

function inline(text: string): Html {
  const parts: (Html | string)[] = [];
  let end = 0;
  for (const match of text.matchAll(marks)) {
    const [whole, code, words, target, strong, emphasis] = match;
    parts.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (code !== undefined) parts.push(codeOf(code));
    else if (words !== undefined && target !== undefined) parts.push(link(words, target));
    else if (strong !== undefined) parts.push(html`<strong>${strong}</strong>`);
    else parts.push(html`<em>${emphasis}</em>`);
  }
  parts.push(text.slice(end));
  return html`${parts}`;
}

/** Paths of pages lead there. */
const pagePath = /^\/[a-z][a-z-]*(\/[a-z-]+)*(\?[a-z]+=[a-z-]+(&[a-z]+=[a-z-]+)*)?$/;
const notPages = /^\/(ready|health|metrics)$/;

function codeOf(text: string): Html {
  const isPage = pagePath.test(text) && !notPages.test(text);
  return isPage ? html`<a href="${text}"><code>${text}</code></a>` : html`<code>${text}</code>`;
}

function link(words: string, target: string): Html {
  if (/^https:\/\//.test(target)) return html`<a href="${target}" rel="noreferrer">${words}</a>`;
  const file = /^([a-z-]+\.md)/.exec(target)?.[1];
  return file === undefined || file === words ? html`${words}` : html`${words} (${file})`;
}
