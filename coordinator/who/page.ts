/** Who crawls it, and why (not): the answer of who/answer as a page. */

import { delegationCauseWords, roundCauseWords } from "#core/delegation-cause";
import type { Standing } from "#core/explanation";
import { rttText } from "#core/format";
import { roundPicture } from "../delegation/round-picture-page.ts";
import { fetchAgainForm, handInForm } from "../submissions/page.ts";
import type { EffectiveDelegation } from "../subnets/subnets-api.ts";
import { fact, small } from "../web/components.ts";
import { askAbout, crawlerLink, instant, sentence, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { rollUpSection } from "./roll-up-page.ts";
import {
  crawlerSection,
  historySection,
  hostSection,
  organisationSection,
  partsSection,
  subnetList,
  subnetTree,
  urlSection,
  waitingSection,
} from "./sections-page.ts";
import type { PublishedReport, WhoAnswer } from "./who-api.ts";
import { ageingWords, crawlWords, publishedWords, takenForText, verdictOf, whence } from "./words.ts";

/** The look-up box alone, with what can be asked. */
export function whoStart(): Html {
  return html`<h1>Who crawls it, and why?</h1>${whoForm("")}
<p>Every URL lies in a registered subnet, and every subnet is crawled by the crawler that is nearest to it. Ask about:</p>
<ul class="kinds">
<li><strong>a URL or a host</strong>: where it lies, who fetches it, what has become of it</li>
<li><strong>an address or a range</strong>: the subnets that hold it, and their crawlers</li>
<li><strong>an organisation</strong>, by name or registry handle, or <strong>a country</strong> by its code: what lies in its space, and who crawls it</li>
<li><strong>a crawler</strong>: the subnets assigned to it</li>
</ul>`;
}

export function whoBody(answer: WhoAnswer, viewer: PageViewer): Html {
  return html`<h1 class="hidden">Who crawls ${answer.takenFor.value}</h1>${whoForm(answer.question)}
${verdict(answer)}
${standing(answer.standing)}
${answer.found ? nothing : nearMatches(answer)}
${answer.round ? roundSection(answer) : nothing}
${answer.chain.length > 0 ? html`<section><h2>Where it lies</h2>${subnetTree(answer)}${publishedLines(answer.published)}</section>` : nothing}
${answer.parts.length > 0 ? partsSection(answer.parts) : nothing}
${answer.crawler ? crawlerSection(answer.crawler) : nothing}
${answer.url ? urlSection(answer.url, answer.order) : nothing}
${answer.url ? fetchAgainForm(viewer, answer.url.url) : answer.takenFor.type === "url" ? handInForm(viewer, answer.takenFor.value) : nothing}
${answer.host ? hostSection(answer.host, answer.at, answer.url !== null) : nothing}
${answer.rollUp && isShown(answer) ? rollUpSection(answer, answer.rollUp) : nothing}
${answer.organisation ? organisationSection(answer.organisation) : nothing}
${
  answer.inside &&
  answer.inside.subnets.length > 0 &&
  html`<section><h2>${answer.crawler ? "Its subnets, latest first" : "Registered subnets inside"}</h2>${subnetList(answer.inside)}</section>`
}
${answer.waiting && answer.waiting.hosts > 0 ? waitingSection(answer.waiting) : nothing}
${answer.history.length > 0 ? historySection(answer.history) : nothing}
${answer.found ? nearMatches(answer) : nothing}
<p class="small share"><a href="${pathWith("/who", { q: answer.question })}">Link to this answer</a>, as of ${instant(answer.at)}. For a terminal:
<code>nearcrawl who ${shellWord(answer.question)}</code></p>`;
}

function publishedLines(published: readonly PublishedReport[]): Html {
  if (published.length === 0) return nothing;
  return html`<p class="small">Published:</p><ul class="plain small">${published.map((one) => html`<li class="break">${publishedWords(one)}</li>`)}</ul>`;
}

/** A range with nothing in use and nothing registered has said so already. */
function isShown({ takenFor, rollUp, found }: WhoAnswer): boolean {
  return found && (takenFor.type !== "range" || (rollUp?.subnets ?? 0) > 0);
}

/** As a shell takes it for one word. */
function shellWord(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function whoForm(question: string): Html {
  return html`<form class="ask" action="/who" method="get" role="search"><label class="hidden"
for="q">URL, host, address, range, organisation, country or crawler</label><div class="field"><input id="q" name="q" type="search" maxlength="2048"
value="${question}" placeholder="URL, host, IP, range, organisation, country or crawler" autocomplete="off"
spellcheck="false"><button>Look up</button></div></form>`;
}

function verdict(answer: WhoAnswer): Html {
  const kind = answer.effective ? "verdict" : "verdict verdict-none";
  return html`<section class="${kind}"><p class="asked">${takenForText(answer)}</p>
<p class="answer">${answer.effective ? html`<strong>${crawlerLink(answer.effective.crawler.name)}</strong> ${crawlWords(answer)}` : verdictOf(answer)}</p>
${answer.effective ? facts(answer.effective) : nothing}${checkedLine(answer)}
${addresses(answer)}</section>`;
}

function facts(effective: EffectiveDelegation): Html {
  const { runnerUp, runnerUpRttMs } = effective;
  return html`<dl class="facts">${fact(
    "RTT",
    html`${rttText(effective.rttMs)}${!effective.measured && html` ${small("decided without an answer")}`}`,
  )}${runnerUp && fact("Runner-up", html`${crawlerLink(runnerUp.name)} ${small(rttText(runnerUpRttMs))}`)}
${fact("Since", instant(effective.since))}
${fact("Because", html`${delegationCauseWords[effective.cause]}, ${small(whence(effective))}`)}
${fact("Crawler", stateBadge(effective.crawler.state))}</dl>`;
}

function addresses(answer: WhoAnswer): Html {
  if (answer.addressesFrom === null || answer.addressesFrom === "question") return nothing;
  const from =
    answer.addressesFrom === "dns" ? html` <span class="small">(looked up in DNS just now)</span>` : nothing;
  return html`<p class="addresses">at ${answer.addresses.slice(0, 8).map((address, index) => html`${index > 0 ? ", " : ""}${askAbout(address)}`)}${from}</p>`;
}

function checkedLine(answer: WhoAnswer): Html {
  const words = ageingWords(answer);
  return words === null ? nothing : html`<p class="small">${sentence(words)}</p>`;
}

function standing(lines: readonly Standing[]): Html {
  if (lines.length === 0) return nothing;
  return html`<ul class="standing">${lines.map(
    (line) =>
      html`<li class="${line.stops ? "stops" : line.code === "ready" ? "ready" : "notes"}">${
        line.stops && html`<span class="hidden">In the way: </span>`
      }${sentence(line.words)}</li>`,
  )}</ul>`;
}

function nearMatches(answer: WhoAnswer): Html {
  if (answer.nearMatches.length === 0) {
    return answer.found || answer.takenFor.type !== "unknown" || answer.question === ""
      ? nothing
      : html`<div class="empty"><p>No organisation, crawler or host has a name like this. Registry handles look like <code>ORG-EX1-RIPE</code>;
hosts and addresses are looked up even when nobody has crawled them.</p></div>`;
  }
  return html`<section><h2>${answer.found ? "Similar names" : "Did you mean"}</h2><ul class="near">${answer.nearMatches.map(
    (match) =>
      html`<li><a href="${pathWith("/who", { q: match.handle ?? match.name })}">${match.name}</a> <span
class="small">${match.handle ?? match.type}</span></li>`,
  )}</ul></section>`;
}

function roundSection(answer: WhoAnswer): Html {
  const { round } = answer;
  if (!round) return nothing;
  const decided = answer.effective?.roundId === round.roundId;
  return html`<section><h2>${decided ? "The round that decided" : "The latest probe round"}</h2>
<p>${sentence(round.reasonWords)}</p>
${round.probes.length > 0 ? roundPicture(round) : nothing}
<p class="small">Round ${round.roundId}, policy ${round.policy}, ${instant(round.decidedAt)}, held because ${roundCauseWords[round.cause]}. Target: <span
class="mono">${round.targetUrl}</span> at ${askAbout(round.targetAddress)}.</p></section>`;
}
