/** One crawler: how it stands and what to do, what it does against what it may, what it has, and its past. */

import { linkMinutes } from "#core/access-types";
import { mayDo } from "#core/actor";
import { bytesText, howMany, leastSamples, msText, sampledShare } from "#core/format";
import { nodesHtml } from "../ask/html-rendering.ts";
import type { ChartHistory } from "../web/chart-history.ts";
import {
  askFor,
  buttonForm,
  confirmForm,
  crawlerFor,
  crawlerOr,
  crawlerPath,
  empty,
  fact,
  onlyOperators,
  small,
  tableOf,
  tile,
} from "../web/components.ts";
import { ago, countText, instant, msOrDash, percentText, shippedShare, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { historySection } from "../web/time-chart.ts";
import { crawlerFacts, subnetList } from "../who/who-ask.ts";
import type { Operation, ShutOutPreview } from "./crawler-api.ts";
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
  const fetched = operation.failures?.fetches;
  const ofFetches =
    fetched === undefined ? "nothing was fetched" : `of ${howMany(fetched, "fetch", "fetches")}`;
  const shipped = crawler.bodyBytes > 0 ? `${shippedShare(crawler)} of their bytes were shipped` : "none yet";
  return html`${header(view, at)}
${crawlerDeeds(view, viewer)}
<dl class="tiles by-four">
${today("Pages today (UTC)", operation.pagesToday, operation.pagesPerDay, countText)}
${today("Bytes today", operation.bytesToday, operation.bytesPerDay, bytesText)}
${tile("Subnets", countText(crawler.subnets), subnetsLink(view, viewer))}
${tile("Mean RTT to them", msOrDash(crawler.meanRttMs))}
${tile("Pages in the index", countText(crawler.pages), shipped)}
${tile("Open leases", countText(crawler.openLeases))}
${probeTile(operation)}
${tile("Failed in 24 h", failedShare(operation), ofFetches)}
</dl>
${nodesHtml([crawlerFacts(crawler, (address) => askFor(viewer, address))])}
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
  const then = since && small(html`${state === "online" ? "connected" : "since"} ${ago(since, at)}`);
  return html`<div class="title-row"><h1>${crawler.name}</h1>${stateBadge(badge)}${then}</div>
${
  why !== null &&
  html`<div class="verdict ${state === "online" ? "" : "verdict-away"}"><p><strong>Why:</strong> ${why}.${since && html` ${small(instant(since))}`}</p>
${advice && html`<p><strong>What to do:</strong> ${advice}</p>`}</div>`
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
      : [
          pages === null ? "any number of pages" : howMany(pages, "page"),
          bytes === null ? "any bytes" : bytesText(bytes),
        ].join(", ");
  return html`<dl class="facts">
${fact("Operators grant a day", of(granted.pagesPerDay, granted.bytesPerDay, "as its partner allows"))}
${fact("Its partner allows a day", of(partnerAllows.pagesPerDay, partnerAllows.bytesPerDay, "not known yet"))}
${fact("Effective limit", `${howMany(pagesPerDay, "page")}, ${bytesText(bytesPerDay)}`)}
</dl>`;
}

/** Those who may ask about any subnet get the list that asks. */
function subnets({ subnets: list }: CrawlerView, { actor }: PageViewer): Html {
  if (mayDo(actor, "read")) return nodesHtml(subnetList(list));
  const lines = list.subnets.map(
    ({ range, rttMs }) => html`<li><span class="mono">${range}</span> ${msOrDash(rttMs)}</li>`,
  );
  return html`<ul class="shares">${lines}</ul>`;
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
  const nameOf = (blame: Blame) =>
    mayDo(actor, "read")
      ? html`<a href="${pathWith("/fleet/failures", { crawler: crawler.name, blame })}">${blameNames[blame]}</a>`
      : blameNames[blame];
  return html`<section><h2>Failures in the last 24 hours, by cause</h2>${
    lines.length === 0
      ? empty("Nothing failed.", `All of ${countText(failures.fetches)} fetches were answered.`)
      : html`<ul class="shares">${lines.map(
          ([blame, count]) =>
            html`<li>${nameOf(blame as Blame)} <strong>${countText(count)}</strong> ${small(sampledShare(count, failures.fetches))}</li>`,
        )}</ul>`
  }</section>`;
}

function fetchSection({ operation: { activity }, outcomes }: CrawlerView, viewer: PageViewer): Html {
  if (activity.fetches.length === 0) return nothing;
  const heads = ["When", "URL .break", "Outcome", "Time .number", "Page .number", "Shipped .number"];
  return html`<section><h2>Latest fetches</h2>
<ul class="shares">${outcomes.map((line) => html`<li>${line.outcome} <strong>${countText(line.fetches)}</strong></li>`)}</ul>
${tableOf(
  "Latest fetches",
  heads,
  activity.fetches,
  ({ at, url, outcome, status, blame, totalMs, bodyBytes, shippedBytes }) => [
    instant(at),
    url === null ? "no longer known" : askFor(viewer, url),
    html`${outcome} ${status}${blame && small(`the fault of ${blameNames[blame]}`)}`,
    msText(totalMs),
    bytesText(bodyBytes),
    bytesText(shippedBytes),
  ],
)}</section>`;
}

function peers({ peers: others }: CrawlerView, viewer: PageViewer): Html {
  if (others.length === 0) return nothing;
  return html`<section><h2>RTT to the others</h2>${tableOf(
    "Distances",
    ["Crawler", "RTT .number", "By"],
    others,
    (peer) => [crawlerFor(viewer, peer.name), msText(peer.rttMs), peer.method],
  )}</section>`;
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
  const identity = revoked ? undefined : inside?.identity;
  const button = (deed: string, label: string) =>
    buttonForm(viewer, { path: crawlerPath(name, deed), label });
  return html`${isDoubted && button("/believe", "Trust it again")}
${identity?.publicKey != null && button("/rotate", "New key")}
${identity?.signingKey && button("/signing-key", "New signing key")}
<a class="button quiet slim" href="${pathWith("/fleet/invite", { renews: name })}">Reissue credentials</a>
${!revoked && html`<a class="button danger slim" href="${crawlerPath(name, "/kill")}">Remove…</a>`}`;
}

function askPartner({ inside, crawler }: CrawlerView): Html {
  const contact = inside?.identity.contact ?? null;
  if (contact === null) return nothing;
  if (!/^[^\s@<>"?&%]+@[^\s@<>"?&%]+$/.test(contact)) return small(`Its partner: ${contact}`);
  const to = `mailto:${contact}?subject=${encodeURIComponent(`Your crawler ${crawler.name}`)}`;
  return html`<a class="button quiet slim" href="${to}">Ask its partner</a>`;
}

function operatorForms(view: CrawlerView, viewer: PageViewer): Html {
  return html`<details class="deeds"><summary>Budget, domain sets, move, the partner's sign-in</summary><div class="deed-list">
${budgetForm(view, viewer)}
${domainSetForm(view, viewer)}
${view.crawler.revoked ? nothing : moveForm(view, viewer)}
${mayDo(viewer.actor, "access-write") ? signInForm(view, viewer) : nothing}
</div></details>`;
}

interface DeedForm {
  readonly deed: string;
  readonly title: string;
  readonly words: Html | string;
  readonly fields: Html;
  readonly button: string;
}

function deedForm(
  { crawler }: CrawlerView,
  viewer: PageViewer,
  { deed, title, words, fields, button }: DeedForm,
): Html {
  return html`<form class="form" method="post" action="${crawlerPath(crawler.name, deed)}">${formToken(viewer)}
<h2>${title}</h2><p class="small">${words}</p>
${fields}
<button class="slim">${button}</button></form>`;
}

function budgetForm(view: CrawlerView, viewer: PageViewer): Html {
  const { granted } = view.operation;
  const gigabytes = granted.bytesPerDay === null ? "" : String(granted.bytesPerDay / 1e9);
  return deedForm(view, viewer, {
    ...{ deed: "/budget", title: "Budget", button: "Grant" },
    words: "Takes effect at once. Never more than its partner allows; empty: as its partner allows.",
    fields: html`<div><label for="pagesPerDay">Maximum pages per day</label><input class="number" id="pagesPerDay" name="pagesPerDay"
inputmode="numeric" pattern="[0-9]*" maxlength="10" value="${granted.pagesPerDay}"></div>
<div><label for="gigabytesPerDay">Maximum gigabytes per day</label><input class="number" id="gigabytesPerDay" name="gigabytesPerDay"
inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" maxlength="12" value="${gigabytes}"></div>`,
  });
}

function moveForm(view: CrawlerView, viewer: PageViewer): Html {
  return deedForm(view, viewer, {
    ...{ deed: "/move", title: "Move to another host", button: "Move" },
    words: html`Invite the new host under any name and start it there; then name it here. ${view.crawler.name} continues there with its
subnets and waiting results; the crawler that ran there ceases to exist. Both must be connected.`,
    fields: html`<div><label for="to">Crawler on the new host</label><input id="to" name="to" required maxlength="63"
autocomplete="off" spellcheck="false"></div>`,
  });
}

function signInForm(view: CrawlerView, viewer: PageViewer): Html {
  const { least, most } = linkMinutes;
  return deedForm(view, viewer, {
    ...{ deed: "/sign-in-link", title: "Let its partner sign in", button: "Make the link" },
    words: html`A link that works once: whoever opens it sees this crawler, may drain and resume it, and sees nothing of others.`,
    fields: html`<div><label for="partner">Name of the person</label><input id="partner" name="person" required maxlength="63"
autocomplete="off"></div>
<div><label for="minutes">Valid for (minutes)</label><input class="number" id="minutes" name="minutes" type="number"
min="${least}" max="${most}" value="${most}" required></div>`,
  });
}

// A crawler's page: which domains it is given, at what pace it is to work, and the form that gives it domains.

const paceWords = {
  "slow-down": "slow down: it has little to do",
  steady: "steady: a connection for each host that is due, as far as its partner allows",
  "hurry-up": "hurry up: as many connections as its partner allows",
} as const;

function workFacts({ work: { domainSets, pace } }: Operation): Html {
  const { operator, partner } = domainSets;
  const given =
    operator.length === 0 ? "every domain" : html`<span class="mono">${operator.join(" or ")}</span>`;
  return html`<dl class="facts">
${fact("Domain sets that operators give it", given)}
${partner.length > 0 && fact("Its partner narrows that to", html`<span class="mono">${partner.join(" or ")}</span>`)}
${fact(
  "Pace",
  pace === null
    ? "as its partner allows; no pace was sent yet"
    : html`${paceWords[pace.pace]} <span class="small">${howMany(pace.dueSlices, "host slice")} due or in hand; since
${instant(pace.since)}</span>`,
)}
</dl>`;
}

function domainSetForm(view: CrawlerView, viewer: PageViewer): Html {
  const sets = view.operation.work.domainSets.operator.join("\n");
  return deedForm(view, viewer, {
    ...{ deed: "/domain-sets", title: "Domain sets", button: "Give" },
    words: html`One a line, such as <span class="mono">.gr</span>, <span class="mono">example.org not shop.example.org</span> or
<span class="mono">lang:el</span>; a host must be in one of them. Empty: every domain. Open leases finish, and hosts move within a
minute or so.`,
    fields: html`<div><label for="sets">Sets</label><textarea id="sets" name="sets" rows="4" maxlength="20000"
spellcheck="false">${sets}</textarea></div>`,
  });
}

// Before a crawler is shut out: what would happen, in two ways, and the buttons for them.

export function shutOutBody(preview: ShutOutPreview, viewer: PageViewer): Html {
  const { name, state, openLeases, subnets } = preview;
  const session =
    state === "offline" ? "It is not connected now, and cannot connect again." : "Its session ends at once.";
  const leases = html`Its <strong>${howMany(openLeases, "lease")}</strong> ${openLeases === 1 ? "returns" : "return"} now`;
  const noLeases = "It holds no leases.";
  return html`<h1>Remove ${name}?</h1>
<p class="lead">Its pages stay in the index. Once killed or revoked, none of its keys works, and only
<a href="/fleet/invite?renews=${encodeURIComponent(name)}">reissued credentials</a> bring it back.</p>
<section class="choices">
${drainCard(preview, viewer)}
<div class="choice-card"><h2>Kill: hand over at once</h2>
<p>For a lost machine, or one that nobody is responsible for.</p>
<ul class="plain"><li>${session}</li>
<li>${openLeases === 0 ? noLeases : html`${leases}, and its pages are reassigned.`}</li>
<li>${handOver(preview, " now, without waiting for it")}</li></ul>
${confirmForm(viewer, { path: crawlerPath(name, "/kill"), label: `Kill ${name}`, typed: name, id: "confirm-kill" })}</div>
<div class="choice-card"><h2>Revoke: only the keys</h2>
<p>For a leaked key, or a partner who takes a break.</p>
<ul class="plain"><li>${session}</li>
<li>${openLeases === 0 ? noLeases : "Its leases return when they expire."}</li>
<li>${subnets === 0 ? noSubnets : "It keeps its subnets for the departure delay; then they go to others."}</li></ul>
${confirmForm(viewer, { path: crawlerPath(name, "/revoke"), label: `Revoke ${name}`, typed: name, id: "confirm-revoke" })}</div>
</section>
<p><a href="${crawlerPath(name)}">Cancel</a></p>`;
}

const noSubnets = "It has no subnets.";

/** To whom its subnets would go. */
function handOver({ subnets, heirs }: ShutOutPreview, when: string): Html | string {
  if (subnets === 0) return noSubnets;
  const go = `${subnets === 1 ? "goes" : "go"} to others${when}`;
  const lines = heirs.map(({ crawler, subnets: count, measured }) => {
    const near = measured
      ? "the next nearest with capacity, as measured"
      : "its neighbour: there is nothing to measure in them yet";
    const whom =
      crawler === null
        ? "to the nearest crawler, after new measurements"
        : html`to ${crawlerOr(crawler, "")}, ${near}`;
    return html`<li>${howMany(count, "subnet")}: ${whom}</li>`;
  });
  return html`Its <strong>${howMany(subnets, "subnet")}</strong> ${go}${
    heirs.length === 0 ? "." : html`:<ul class="plain">${lines}</ul>`
  }`;
}

/** The gentle way, and the one with a way back. */
function drainCard(preview: ShutOutPreview, viewer: PageViewer): Html {
  const { name, state, revoked, openLeases } = preview;
  if (revoked || state === "draining") return nothing;
  const finishes =
    openLeases > 0 && html`, and finishes its <strong>${howMany(openLeases, "lease")}</strong>`;
  return html`<div class="choice-card"><h2>Drain: hand over first</h2>
<p>For a machine that stops for good or for a while. It stays in the fleet; <em>Resume</em> brings it back, with the subnet that it is
in.</p>
<ul class="plain"><li>It gets no new pages${finishes}.</li>
<li>${handOver(preview, "")}</li></ul>
${buttonForm(viewer, { path: crawlerPath(name, "/drain"), label: `Drain ${name}` })}</div>`;
}
