/** What sites and hubs said had changed, by host: how much was heard, and how often they were right. */
import { empty, titleRow } from "../web/components.ts";
import { askAbout, countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import {
  type FeedReport,
  feedWords,
  type HostHints,
  hearingWords,
  hintWords,
  keyWords,
  statesOfFeeds,
} from "./hint.ts";

export function hintsBody({
  hosts,
  feeds,
}: {
  readonly hosts: readonly HostHints[];
  readonly feeds: Readonly<Record<FeedReport["state"], number>>;
}): Html {
  return html`${titleRow("Hints")}
<p class="lead">Sites report changed URLs (IndexNow), and hubs changed feeds (WebSub). A hint brings a fetch forward, within the host's budget and pace; hosts with wrong hints get a lower limit. The policies are <a href="/policies">hints.*</a>.</p>
<p class="small">Feeds that name a hub: ${statesOfFeeds(feeds)}.</p>
${hosts.length === 0 ? empty("No hints yet.", "Sites send them to /indexnow.") : hostTable(hosts)}`;
}

function hostTable(hosts: readonly HostHints[]): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Hints by host"><table><thead><tr><th scope="col">Host</th><th scope="col">Source</th><th scope="col" class="number">Received</th><th scope="col" class="number">Accepted</th><th scope="col" class="number">Right</th><th scope="col" class="number">Wrong</th><th scope="col" class="number">Skipped</th><th scope="col" class="number">Waiting</th><th scope="col">Limit</th><th scope="col">Last</th></tr></thead><tbody>
${hosts.map(
  (one) =>
    html`<tr><th scope="row">${askAbout(one.host)}</th><td>${one.source}</td><td class="number">${countText(one.received)}</td><td class="number">${countText(one.taken)}</td><td class="number">${countText(one.right)}</td><td class="number">${countText(one.wrong)}</td><td class="number">${countText(one.dropped)}</td><td class="number">${countText(one.waiting)}</td><td>${hearingWords(one)}</td><td>${instant(one.lastAt)}</td></tr>`,
)}
</tbody></table></div>`;
}

/** Of one host, in the answer to `who`. */
export function hostHintLines(hints: readonly HostHints[]): Html {
  if (hints.length === 0) return nothing;
  return html`<h3>Hints</h3><ul class="plain">${hints.map(
    (one) =>
      html`<li>${hintWords(one)}<ul>${one.keys.map((key) => html`<li>${keyWords(key)}</li>`)}${one.feeds.map((feed) => html`<li class="break">${feedWords(feed)}</li>`)}</ul></li>`,
  )}</ul>`;
}
