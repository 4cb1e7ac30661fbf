/** A crawler's past, for operators and its partner: keys, releases, trust, incidents, moves, absences, and all by time. */
import { mayDo } from "#core/actor";
import { bytesText, howMany, spanWords } from "#core/format";
import type { Absence } from "../crawlers/crawler.ts";
import type { MoveLine } from "../crawlers/move-store.ts";
import type { MoveStep } from "../crawlers/moves.ts";
import { incidentTable } from "../overview/incidents-page.ts";
import { standingWords, type TrustEvidence, type TrustReport, unprovenWords } from "../trust/trust-api.ts";
import { askFor, crawlerFor, crawlerPath, dateOr, empty, fact, pager, titleRow } from "../web/components.ts";
import { ago, countText, instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import type { CrawlerLogPage, Operation } from "./crawler-api.ts";
import type { CrawlerView, Inside } from "./crawler-view.ts";

export interface CrawlerInside {
  readonly crawler: CrawlerView["crawler"];
  readonly inside: Inside;
  readonly at: string;
}

export function insideSections(of: CrawlerInside, viewer: PageViewer): Html {
  const { crawler, inside, at } = of;
  return html`${identitySection(inside)}
${keySection(inside)}
${releaseSection(inside)}
${trustSection(inside.trust, viewer)}
<section id="incidents"><h2>Incidents of the last week</h2>${
    inside.incidents.length === 0
      ? empty("None.", "Nothing that it sent was refused.")
      : html`${incidentTable(inside.incidents, { withCrawler: false })}${mayDo(viewer.actor, "fleet-read") ? html`<p class="small"><a href="${pathWith("/fleet/incidents", { crawler: crawler.name })}">All kept</a></p>` : nothing}`
  }</section>
${inside.moves.length === 0 ? nothing : html`<section><h2>Moves</h2>${moveTable(inside.moves, viewer)}</section>`}
${logSection(inside.log, crawler.name, at)}
${mayDo(viewer.actor, "audit-read") ? html`<p class="small"><a href="${pathWith("/audit", { target: crawler.name })}">Changes in full, with before and after</a></p>` : nothing}`;
}

function identitySection({ identity }: Inside): Html {
  const { publicKey, signingKey, seenAddress, addressBefore, addressChangedAt, copiedAt, lastEnd } = identity;
  const { contact, isListed } = identity;
  const moved =
    addressBefore === null || addressChangedAt === null
      ? nothing
      : html` <span class="small">${addressBefore} until ${instant(addressChangedAt.toISOString())}</span>`;
  return html`<section><h2>Identity</h2>
${copiedAt === null ? nothing : html`<p class="fault" role="alert">Its folder was copied: two machines showed it, last at ${instant(copiedAt.toISOString())}. Have one of them stopped, or reissue its credentials.</p>`}
<dl class="facts">
${fact("Public key (Ed25519)", publicKey === null ? "none: it shows only its key" : html`<code class="break">${publicKey}</code>`)}
${signingKey === null ? nothing : fact("Signs requests with", html`<code class="break">${signingKey.publicKey}</code> <span class="small">since ${instant(signingKey.since.toISOString())}, until ${instant(signingKey.until.toISOString())} at the latest; keyid ${signingKey.keyId}</span>`)}
${fact("Connects from", seenAddress === null ? "never seen" : html`${seenAddress}${moved}`)}
${fact("Its address is", isListed ? "in the public list of the fleet" : "in no public list, as its partner wishes")}
${fact("Contact of its partner", contact ?? "not told")}
${lastEnd === null ? nothing : fact("Last words of its process", html`${lastEnd.reason} <span class="small">${instant(lastEnd.at.toISOString())}</span>`)}
</dl></section>`;
}

function keySection({ keys }: Inside): Html {
  if (keys.length === 0) return nothing;
  return html`<section><h2>Keys</h2><p class="small">Kept as hashes; each is replaced by itself after 90 days.</p><div class="scroll" tabindex="0" role="region" aria-label="Keys"><table>
<thead><tr><th scope="col" class="number">Key</th><th scope="col">Issued</th><th scope="col">Arrived</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">For</th></tr></thead>
<tbody>${keys.map(
    (key) =>
      html`<tr><td class="number">${key.keyId}</td><td>${instant(key.issuedAt.toISOString())}</td><td>${dateOr(key.keptAt, "not yet known")}</td><td>${dateOr(key.lastUsedAt, "never")}</td><td>${key.revokedAt === null ? dateOr(key.expiresAt, "when it is replaced") : html`revoked ${instant(key.revokedAt.toISOString())}`}</td><td>${key.scopes.includes("crawl") ? "crawling" : "measuring only"}</td></tr>`,
  )}</tbody></table></div></section>`;
}

function releaseSection({ offers }: Inside): Html {
  if (offers.length === 0) return nothing;
  return html`<section><h2>Releases that it was offered</h2><div class="scroll" tabindex="0" role="region" aria-label="Releases"><table>
<thead><tr><th scope="col">Release</th><th scope="col">Offered</th><th scope="col">What came of it</th></tr></thead>
<tbody>${offers.map(
    (offer) =>
      html`<tr><th scope="row">${offer.version}</th><td>${instant(offer.offeredAt.toISOString())}</td><td>${offer.state ?? "no report yet"}${offer.reportedAt === null ? nothing : html` <span class="small">${instant(offer.reportedAt.toISOString())}</span>`}${offer.reason === "" ? nothing : html`<span class="small">${offer.reason}</span>`}</td></tr>`,
  )}</tbody></table></div></section>`;
}

const evidenceShown = 20;

function trustSection(trust: TrustReport | null, viewer: PageViewer): Html {
  if (trust === null) return nothing;
  const doubts = [trust.distrusted, trust.probesDoubted].filter((one) => one !== null);
  return html`<section id="trust"><h2>Trust: ${standingWords[trust.standing]}</h2>
${doubts.map((one) => html`<p class="fault">Since ${instant(one.since.toISOString())}: ${one.words}.</p>`)}
${trust.standing === "unproven" ? html`<p class="fault">${unprovenWords(trust.comparisons)}</p>` : nothing}
<p>${comparisonWords(trust)}</p>
${
  trust.evidence.length === 0
    ? nothing
    : html`<details><summary>${howMany(trust.evidence.length, "page")} of evidence, the latest first</summary><ol class="plain">${trust.evidence.slice(0, evidenceShown).map((one) => evidence(one, viewer))}</ol></details>`
}</section>`;
}

function comparisonWords({ pages, comparisons, restoredAt, connected }: TrustReport): Html {
  const { agreed, alone, once } = comparisons;
  const counted =
    agreed + alone + once === 0
      ? "None of its pages has been compared yet."
      : `Of ${howMany(pages, "page")} ${howMany(agreed + alone + once, "comparison")} count: ${countText(agreed)} agree with another crawler's, ${countText(alone)} differ from everybody's each time, ${countText(once)} differed once.`;
  return html`${counted}${restoredAt === null ? nothing : html` An operator restored it ${instant(restoredAt.toISOString())}.`}${connected < 3 ? " Fewer than three crawlers are connected: nobody can say which of two is right." : nothing}`;
}

function evidence(one: TrustEvidence, viewer: PageViewer): Html {
  return html`<li>${askFor(viewer, one.url)} <span class="small">${instant(one.at.toISOString())}: ${one.verdict === "alone" ? "differs each time" : "differed once"}, ${one.words}; ${one.counts ? "counts" : "does not count"}: ${one.why}.</span><ul class="plain small">${one.opinions.map(
    (opinion) => html`<li>${opinion.crawler} found ${opinion.said}, ${instant(opinion.at)}</li>`,
  )}</ul></li>`;
}

const absencesShown = 10;

/** Everybody sees when and why; last words come from the crawler, for operators and its partner alike. */
export function absenceSection({ absences }: Operation): Html {
  if (absences.length === 0) return nothing;
  const [latest, older] = [absences.slice(0, absencesShown), absences.slice(absencesShown)];
  return html`<section id="absences"><h2>Absences</h2>${absenceTable(latest, "Absences")}${
    older.length === 0
      ? nothing
      : html`<details><summary>${howMany(older.length, "absence")} before that</summary>${absenceTable(older, "Absences before that")}</details>`
  }</section>`;
}

function absenceTable(absences: readonly Absence[], label: string): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table>
<thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col" class="number">For</th><th scope="col">Why</th></tr></thead>
<tbody>${absences.map(
    ({ since, until, reason, lastWords }) =>
      html`<tr><td>${instant(since.toISOString())}</td><td>${instant(until.toISOString())}</td><td class="number">${spanWords((until.getTime() - since.getTime()) / 1000)}</td><td class="why">${reason}${lastWords === null ? nothing : html`<span class="small">last words: ${lastWords}</span>`}</td></tr>`,
  )}</tbody></table></div>`;
}

const logLinesShown = 15;

function logSection({ lines, more }: CrawlerLogPage, name: string, at: string): Html {
  if (lines.length === 0) return nothing;
  const isMore = more || lines.length > logLinesShown;
  return html`<section id="log"><h2>Log</h2>${logTable({ lines: lines.slice(0, logLinesShown) }, at)}
${isMore ? html`<p class="small"><a href="${crawlerPath(name, "/log")}">The whole log</a></p>` : nothing}</section>`;
}

// Everything that was noted of one crawler, by time; on its own page, since it may be long.

export function crawlerLogBody(name: string, log: CrawlerLogPage, at: string): Html {
  return html`<h1>Log of <a href="${crawlerPath(name)}">${name}</a></h1>
${log.lines.length === 0 ? empty("No more entries.", html`<a href="${crawlerPath(name)}">Back to ${name}</a>`) : logTable(log, at)}
${pager({ path: crawlerPath(name, "/log"), query: {}, page: log.page, more: log.more })}`;
}

function logTable({ lines }: Pick<CrawlerLogPage, "lines">, at: string): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Log"><table class="log">
<thead><tr><th scope="col">When</th><th scope="col">Kind</th><th scope="col">What</th><th scope="col">By, or from</th></tr></thead>
<tbody>${lines.map(
    (line) =>
      html`<tr><td>${instant(line.at.toISOString())}<span class="small">${ago(line.at.toISOString(), at)}</span></td><td>${line.kind}</td><td class="break">${line.words}</td><td>${line.by ?? "–"}</td></tr>`,
  )}</tbody></table></div>`;
}

// Moves of crawlers to other hosts: where each stands.

const stepWords: Readonly<Record<MoveStep, string>> = {
  asked: "waiting for the coordinator",
  emptying: "the other host finishes and ships its own work",
  packing: "the crawler finishes its requests and ships its results",
  sending: "its data is being sent",
  moved: "moved; waiting for it to connect from the new host",
  running: "done: it runs on the other host",
  failed: "not moved: both continue as before",
};

export function movesBody(moves: readonly MoveLine[], viewer: PageViewer): Html {
  return html`${titleRow("Moves")}
<p class="lead">A move takes a crawler to another host of its partner, with its name, subnets and waiting results. Start one on the crawler's page, or with <code>nearcrawl fleet move NAME --to OTHER</code>.</p>
${moves.length === 0 ? empty("No moves yet.", "") : moveTable(moves, viewer)}`;
}

function moveTable(moves: readonly MoveLine[], viewer: PageViewer): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Moves"><table>
<thead><tr><th scope="col">Asked for</th><th scope="col">Crawler</th><th scope="col">To the host of</th><th scope="col">State</th><th scope="col">Since</th></tr></thead>
<tbody>${moves.map(
    (move) =>
      html`<tr><td>${instant(move.askedAt.toISOString())}</td><td>${crawlerFor(viewer, move.name)}</td><td>${crawlerFor(viewer, move.otherName)}</td><td class="why">${stepWords[move.step]}${move.step === "sending" ? html`<span class="small">${bytesText(move.sentBytes)} of ${bytesText(move.bytes)}</span>` : nothing}${move.words === "" ? nothing : html`<span class="small">${move.words}</span>`}</td><td>${instant(move.changedAt.toISOString())}</td></tr>`,
  )}</tbody></table></div>`;
}
