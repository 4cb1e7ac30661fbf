/** One crawler: how it stands and what to do, what it does against what it may, what it has, and its past. */

import { linkMinutes } from "#core/access-types";
import { mayDo } from "#core/actor";
import { bytesText, howMany, leastSamples, msText, sampledShare } from "#core/format";
import type { ChartHistory } from "../web/chart-history.ts";
import {
  askFor,
  buttonForm,
  confirmForm,
  crawlerFor,
  crawlerOr,
  crawlerPath,
  empty,
  onlyOperators,
  tile,
} from "../web/components.ts";
import { ago, countText, instant, msOrDash, percentText, shippedShare, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { historySection } from "../web/time-chart.ts";
import { crawlerFacts, subnetList } from "../who/sections-page.ts";
import type { CrawlerActivity, Operation, ShutOutPreview } from "./crawler-api.ts";
import { absenceSection, insideSections } from "./crawler-history-page.ts";
import type { CrawlerView } from "./crawler-view.ts";
import type { Blame } from "./fleet-api.ts";

interface CrawlerPage {
  readonly view: CrawlerView;
  readonly history: ChartHistory;
  readonly at: string;
}

export function crawlerBody({ view, history, at }: CrawlerPage, viewer: PageViewer): Html {
  const { crawler, operation, inside } = view;
  return html`${header(view, at)}
${crawlerDeeds(view, viewer)}
<dl class="tiles by-four">
${today("Pages today (UTC)", operation.pagesToday, operation.pagesPerDay, countText)}
${today("Bytes today", operation.bytesToday, operation.bytesPerDay, bytesText)}
${tile("Subnets", countText(crawler.subnets), subnetsLink(view, viewer))}
${tile("Mean RTT to them", msOrDash(crawler.meanRttMs))}
${tile("Pages in the index", countText(crawler.pages), crawler.bodyBytes > 0 ? `${shippedShare(crawler)} of their bytes were shipped` : "none yet")}
${tile("Open leases", countText(crawler.openLeases))}
${probeTile(operation)}
${tile("Failed in 24 h", failedShare(operation), operation.failures === null ? "nothing was fetched" : `of ${countText(operation.failures.fetches)} ${operation.failures.fetches === 1 ? "fetch" : "fetches"}`)}
</dl>
${crawlerFacts(crawler, (address) => askFor(viewer, address))}
${limitFacts(operation)}
${workFacts(operation)}
${historySection(crawlerPath(crawler.name), {}, history)}
${failureSection(view, viewer)}
${absenceSection(operation)}
<section><h2>Its subnets, latest first</h2>${
    view.subnets.subnets.length > 0
      ? subnets(view, viewer)
      : empty("None yet.", "It gets the subnets that it turns out to be nearest to.")
  }</section>
${fetchSection(view, viewer)}
${inside === null ? nothing : insideSections({ crawler, inside, at }, viewer)}
${peers(view, viewer)}`;
}

function header({ crawler, operation: { standing } }: CrawlerView, at: string): Html {
  const { state, since, why, advice } = standing;
  const badge = state === "never" ? "never connected" : state;
  return html`<div class="title-row"><h1>${crawler.name}</h1>${stateBadge(badge)}${since === null ? nothing : html`<span class="small">${state === "online" ? "connected" : "since"} ${ago(since, at)}</span>`}</div>
${
  why === null
    ? nothing
    : html`<div class="verdict ${state === "online" ? "" : "verdict-away"}"><p><strong>Why:</strong> ${why}.${since === null ? nothing : html` <span class="small">${instant(since)}</span>`}</p>${advice === null ? nothing : html`<p><strong>What to do:</strong> ${advice}</p>`}</div>`
}`;
}

function today(name: string, done: number, most: number, text: (value: number) => string): Html {
  const share = most > 0 ? ` (${percentText(done / most)})` : "";
  return tile(name, text(done), `of ${text(most)}${share}`);
}

function subnetsLink({ crawler }: CrawlerView, { actor }: PageViewer): Html {
  if (crawler.subnets === 0 || !mayDo(actor, "read")) return nothing;
  return html`<a href="${pathWith("/explore", { crawler: crawler.name })}">on the map of the IP space</a>`;
}

function probeTile({ activity: { probes } }: Operation): Html {
  const of = `in the latest ${howMany(probes.rounds, "round")}${answeredWords(probes)}`;
  return tile("Recent probes", countText(probes.asked), of);
}

function answeredWords({ asked, measured }: Operation["activity"]["probes"]): string {
  if (asked === 0) return "";
  return asked < leastSamples
    ? `, ${countText(measured)} answered`
    : `, ${percentText(measured / asked)} answered`;
}

function failedShare({ failures }: Operation): string {
  if (failures === null || failures.fetches === 0) return "–";
  const failed = Object.values(failures.failures).reduce((sum, count) => sum + count, 0);
  return sampledShare(failed, failures.fetches);
}

function limitFacts({ granted, partnerAllows, pagesPerDay, bytesPerDay }: Operation): Html {
  const of = (pages: number | null, bytes: number | null, none: string) =>
    pages === null && bytes === null
      ? none
      : `${pages === null ? "any number of pages" : howMany(pages, "page")}, ${bytes === null ? "any bytes" : bytesText(bytes)}`;
  return html`<dl class="facts">
<div><dt>Operators grant a day</dt><dd>${of(granted.pagesPerDay, granted.bytesPerDay, "as its partner allows")}</dd></div>
<div><dt>Its partner allows a day</dt><dd>${of(partnerAllows.pagesPerDay, partnerAllows.bytesPerDay, "not known yet")}</dd></div>
<div><dt>Effective limit</dt><dd>${howMany(pagesPerDay, "page")}, ${bytesText(bytesPerDay)}</dd></div>
</dl>`;
}

/** Those who may ask about any subnet get the list that asks. */
function subnets({ subnets: list }: CrawlerView, { actor }: PageViewer): Html {
  if (mayDo(actor, "read")) return subnetList(list);
  return html`<ul class="shares">${list.subnets.map((line) => html`<li><span class="mono">${line.range}</span> ${msOrDash(line.rttMs)}</li>`)}</ul>`;
}

export const blameNames: Readonly<Record<Blame, string>> = {
  target: "the site",
  network: "the network",
  crawler: "the crawler",
  us: "our software",
};

function failureSection({ crawler, operation: { failures } }: CrawlerView, { actor }: PageViewer): Html {
  if (failures === null) return nothing;
  const lines = Object.entries(failures.failures).filter(([, count]) => count > 0);
  return html`<section><h2>Failures in the last 24 hours, by cause</h2>${
    lines.length === 0
      ? empty("Nothing failed.", `All of ${countText(failures.fetches)} fetches were answered.`)
      : html`<ul class="shares">${lines.map(
          ([blame, count]) =>
            html`<li>${mayDo(actor, "read") ? html`<a href="${pathWith("/fleet/failures", { crawler: crawler.name, blame })}">${blameNames[blame as Blame]}</a>` : blameNames[blame as Blame]} <strong>${countText(count)}</strong> <span class="small">${sampledShare(count, failures.fetches)}</span></li>`,
        )}</ul>`
  }</section>`;
}

function fetchSection({ operation: { activity }, outcomes }: CrawlerView, viewer: PageViewer): Html {
  if (activity.fetches.length === 0) return nothing;
  return html`<section><h2>Latest fetches</h2>
<ul class="shares">${outcomes.map((line) => html`<li>${line.outcome} <strong>${countText(line.fetches)}</strong></li>`)}</ul>
<div class="scroll" tabindex="0" role="region" aria-label="Latest fetches"><table><thead><tr><th scope="col">When</th><th scope="col">URL</th><th scope="col">Outcome</th><th scope="col" class="number">Time</th><th scope="col" class="number">Page</th><th scope="col" class="number">Shipped</th></tr></thead>
<tbody>${activity.fetches.map((line) => fetchRow(line, viewer))}</tbody></table></div></section>`;
}

function fetchRow(line: CrawlerActivity["fetches"][number], viewer: PageViewer): Html {
  return html`<tr><td>${instant(line.at.toISOString())}</td><td class="break">${line.url === null ? "no longer known" : askFor(viewer, line.url)}</td><td>${line.outcome} ${line.status}${line.blame === null ? nothing : html`<span class="small">the fault of ${blameNames[line.blame]}</span>`}</td><td class="number">${msText(line.totalMs)}</td><td class="number">${bytesText(line.bodyBytes)}</td><td class="number">${bytesText(line.shippedBytes)}</td></tr>`;
}

function peers({ peers: others }: CrawlerView, viewer: PageViewer): Html {
  if (others.length === 0) return nothing;
  return html`<section><h2>RTT to the others</h2><div class="scroll" tabindex="0" role="region" aria-label="Distances"><table><thead><tr><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col">By</th></tr></thead><tbody>${others.map(
    (peer) =>
      html`<tr><th scope="row">${crawlerFor(viewer, peer.name)}</th><td class="number">${msText(peer.rttMs)}</td><td>${peer.method}</td></tr>`,
  )}</tbody></table></div></section>`;
}

// What can be done with a crawler, by whoever looks at its page: buttons and small forms.

function crawlerDeeds(view: CrawlerView, viewer: PageViewer): Html {
  const { name } = view.crawler;
  const isOperator = mayDo(viewer.actor, "fleet-write");
  if (!isOperator && !mayDo(viewer.actor, "fleet-write", { crawler: name, partnersToo: true })) {
    return onlyOperators(viewer.actor, "fleet-write", "Steering this crawler");
  }
  return html`<div class="actions" role="group" aria-label="What can be done">
${drainOrResume(view, viewer)}
${isOperator ? operatorButtons(view, viewer) : nothing}
${askPartner(view)}
</div>
${isOperator ? operatorForms(view, viewer) : nothing}`;
}

/** A partner takes back what it drained itself. */
function drainOrResume({ crawler, operation: { draining } }: CrawlerView, viewer: PageViewer): Html {
  if (crawler.revoked) return nothing;
  if (draining === null) {
    return buttonForm(viewer, { path: crawlerPath(crawler.name, "/drain"), label: "Drain" });
  }
  const isPartner = viewer.actor.role === "partner";
  if (isPartner && draining.askedBy !== "partner") {
    return html`<p class="small">An operator resumes it: ask there.</p>`;
  }
  return buttonForm(viewer, { path: crawlerPath(crawler.name, "/resume"), label: "Resume", kind: "plain" });
}

function operatorButtons({ crawler, inside, operation }: CrawlerView, viewer: PageViewer): Html {
  const { name, revoked } = crawler;
  const isDoubted = operation.trust === "distrusted" || operation.trust === "probes-doubted";
  const canRotate = !revoked && inside !== null && inside.identity.publicKey !== null;
  return html`${isDoubted ? buttonForm(viewer, { path: crawlerPath(name, "/believe"), label: "Trust it again" }) : nothing}
${canRotate ? buttonForm(viewer, { path: crawlerPath(name, "/rotate"), label: "New key" }) : nothing}
${!revoked && inside?.identity.signingKey ? buttonForm(viewer, { path: crawlerPath(name, "/signing-key"), label: "New signing key" }) : nothing}
<a class="button quiet slim" href="${pathWith("/fleet/invite", { renews: name })}">Reissue credentials</a>
${revoked ? nothing : html`<a class="button danger slim" href="${crawlerPath(name, "/kill")}">Remove…</a>`}`;
}

function askPartner({ inside, crawler }: CrawlerView): Html {
  const contact = inside?.identity.contact ?? null;
  if (contact === null) return nothing;
  if (/^[^\s@<>"?&%]+@[^\s@<>"?&%]+$/.test(contact)) {
    return html`<a class="button quiet slim" href="mailto:${contact}?subject=${encodeURIComponent(`Your crawler ${crawler.name}`)}">Ask its partner</a>`;
  }
  return html`<span class="small">Its partner: ${contact}</span>`;
}

function operatorForms(view: CrawlerView, viewer: PageViewer): Html {
  return html`<details class="deeds"><summary>Budget, domain sets, move, the partner's sign-in</summary><div class="deed-list">
${budgetForm(view, viewer)}
${domainSetForm(view, viewer)}
${view.crawler.revoked ? nothing : moveForm(view, viewer)}
${mayDo(viewer.actor, "access-write") ? signInForm(view, viewer) : nothing}
</div></details>`;
}

function budgetForm({ crawler, operation: { granted } }: CrawlerView, viewer: PageViewer): Html {
  const gigabytes = granted.bytesPerDay === null ? "" : String(granted.bytesPerDay / 1e9);
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/budget")}">${formToken(viewer)}
<h2>Budget</h2><p class="small">Takes effect at once. Never more than its partner allows; empty: as its partner allows.</p>
<div><label for="pagesPerDay">Maximum pages per day</label><input class="number" id="pagesPerDay" name="pagesPerDay" inputmode="numeric" pattern="[0-9]*" maxlength="10" value="${granted.pagesPerDay}"></div>
<div><label for="gigabytesPerDay">Maximum gigabytes per day</label><input class="number" id="gigabytesPerDay" name="gigabytesPerDay" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" maxlength="12" value="${gigabytes}"></div>
<button class="slim">Grant</button></form>`;
}

function moveForm({ crawler }: CrawlerView, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/move")}">${formToken(viewer)}
<h2>Move to another host</h2><p class="small">Invite the new host under any name and start it there; then name it here. ${crawler.name} continues there with its subnets and waiting results; the crawler that ran there ceases to exist. Both must be connected.</p>
<div><label for="to">Crawler on the new host</label><input id="to" name="to" required maxlength="63" autocomplete="off" spellcheck="false"></div>
<button class="slim">Move</button></form>`;
}

function signInForm({ crawler }: CrawlerView, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/sign-in-link")}">${formToken(viewer)}
<h2>Let its partner sign in</h2><p class="small">A link that works once: whoever opens it sees this crawler, may drain and resume it, and sees nothing of others.</p>
<div><label for="partner">Name of the person</label><input id="partner" name="person" required maxlength="63" autocomplete="off"></div>
<div><label for="minutes">Valid for (minutes)</label><input class="number" id="minutes" name="minutes" type="number" min="${linkMinutes.least}" max="${linkMinutes.most}" value="${linkMinutes.most}" required></div>
<button class="slim">Make the link</button></form>`;
}

// A crawler's page: which domains it is given, at what pace it is to work, and the form that gives it domains.

const paceWords = {
  "slow-down": "slow down: it has little to do",
  steady: "steady: a connection for each host that is due, as far as its partner allows",
  "hurry-up": "hurry up: as many connections as its partner allows",
} as const;

function workFacts({ work: { domainSets, pace } }: Operation): Html {
  const { operator, partner } = domainSets;
  return html`<dl class="facts">
<div><dt>Domain sets that operators give it</dt><dd>${operator.length === 0 ? "every domain" : html`<span class="mono">${operator.join(" or ")}</span>`}</dd></div>
${partner.length === 0 ? nothing : html`<div><dt>Its partner narrows that to</dt><dd class="mono">${partner.join(" or ")}</dd></div>`}
<div><dt>Pace</dt><dd>${pace === null ? "as its partner allows; no pace was sent yet" : html`${paceWords[pace.pace]} <span class="small">${howMany(pace.dueSlices, "host slice")} due or in hand; since ${instant(pace.since.toISOString())}</span>`}</dd></div>
</dl>`;
}

function domainSetForm({ crawler, operation: { work } }: CrawlerView, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, "/domain-sets")}">${formToken(viewer)}
<h2>Domain sets</h2><p class="small">One a line, such as <span class="mono">.gr</span>, <span class="mono">example.org not shop.example.org</span> or <span class="mono">lang:el</span>; a host must be in one of them. Empty: every domain. Open leases finish, and hosts move within a minute or so.</p>
<div><label for="sets">Sets</label><textarea id="sets" name="sets" rows="4" maxlength="20000" spellcheck="false">${work.domainSets.operator.join("\n")}</textarea></div>
<button class="slim">Give</button></form>`;
}

// Before a crawler is shut out: what would happen, in two ways, and the buttons for them.

export function shutOutBody(preview: ShutOutPreview, viewer: PageViewer): Html {
  const { name, state, openLeases, subnets, heirs } = preview;
  const session =
    state === "offline" ? "It is not connected now, and cannot connect again." : "Its session ends at once.";
  return html`<h1>Remove ${name}?</h1>
<p class="lead">Its pages stay in the index. Once killed or revoked, none of its keys works, and only <a href="/fleet/invite?renews=${encodeURIComponent(name)}">reissued credentials</a> bring it back.</p>
<section class="choices">
${drainCard(preview, viewer)}
<div class="choice-card"><h2>Kill: hand over at once</h2>
<p>For a lost machine, or one that nobody is responsible for.</p>
<ul class="plain"><li>${session}</li>
<li>${openLeases === 0 ? "It holds no leases." : html`Its <strong>${howMany(openLeases, "lease")}</strong> ${openLeases === 1 ? "returns" : "return"} now, and its pages are reassigned.`}</li>
<li>${subnets === 0 ? "It has no subnets." : html`Its <strong>${howMany(subnets, "subnet")}</strong> ${subnets === 1 ? "goes" : "go"} to others now, without waiting for it${heirs.length === 0 ? "." : ":"}`}${heirList(preview)}</li></ul>
${confirmForm(viewer, { path: crawlerPath(name, "/kill"), label: `Kill ${name}`, typed: name, id: "confirm-kill" })}</div>
<div class="choice-card"><h2>Revoke: only the keys</h2>
<p>For a leaked key, or a partner who takes a break.</p>
<ul class="plain"><li>${session}</li>
<li>${openLeases === 0 ? "It holds no leases." : "Its leases return when they expire."}</li>
<li>${subnets === 0 ? "It has no subnets." : "It keeps its subnets for the departure delay; then they go to others."}</li></ul>
${confirmForm(viewer, { path: crawlerPath(name, "/revoke"), label: `Revoke ${name}`, typed: name, id: "confirm-revoke" })}</div>
</section>
<p><a href="${crawlerPath(name)}">Cancel</a></p>`;
}

/** The gentle way, and the one with a way back. */
function drainCard(preview: ShutOutPreview, viewer: PageViewer): Html {
  const { name, state, revoked, openLeases, subnets, heirs } = preview;
  if (revoked || state === "draining") return nothing;
  return html`<div class="choice-card"><h2>Drain: hand over first</h2>
<p>For a machine that stops for good or for a while. It stays in the fleet; <em>Resume</em> brings it back, with the subnet that it is in.</p>
<ul class="plain"><li>It gets no new pages${openLeases === 0 ? "." : html`, and finishes its <strong>${howMany(openLeases, "lease")}</strong>.`}</li>
<li>${subnets === 0 ? "It has no subnets." : html`Its <strong>${howMany(subnets, "subnet")}</strong> ${subnets === 1 ? "goes" : "go"} to others${heirs.length === 0 ? "." : ":"}`}${heirList(preview)}</li></ul>
${buttonForm(viewer, { path: crawlerPath(name, "/drain"), label: `Drain ${name}` })}</div>`;
}

function heirList({ heirs }: ShutOutPreview): Html {
  if (heirs.length === 0) return nothing;
  return html`<ul class="plain">${heirs.map(
    ({ crawler, subnets, measured }) =>
      html`<li>${howMany(subnets, "subnet")}: ${crawler === null ? "to the nearest crawler, after new measurements" : html`to ${crawlerOr(crawler, "")}, ${measured ? "the next nearest with capacity, as measured" : "its neighbour: there is nothing to measure in them yet"}`}</li>`,
  )}</ul>`;
}
