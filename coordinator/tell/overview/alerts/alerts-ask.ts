/**
 * The alerts on the overview and on /alerts: what is wrong, what to do, where to look and who is notified. People can
 * acknowledge alerts, mute them for a time and test a channel.
 */
import { z } from "zod";
import { type Actor, mayDo } from "#core/actor";
import { howMany, instantWords } from "#core/format";
import {
  actions,
  column,
  form,
  group,
  lead,
  list,
  note,
  picture,
  present,
  section,
  table,
  warning,
} from "../../../ask/document.ts";
import { nodesHtml } from "../../../ask/html-rendering.ts";
import { type Column, Fault, type Node, operationsOf } from "../../../ask/operation.ts";
import type { Visit } from "../../../web/access.ts";
import { dateTime, openRecord } from "../../../web/api-operation.ts";
import { small } from "../../../web/components.ts";
import { ago, instant } from "../../../web/format.ts";
import { type Html, html, nothing } from "../../../web/html.ts";
import { type AlertRule, alertSeverities } from "../alert-facts.ts";
import { type Alert, type AlertList, alertNames, bareTarget, listedRules } from "../alert-rules.ts";
import { alertList } from "../overview-api.ts";
import type { AlertStore } from "./alert-store.ts";
import { type AlertChannelClient, countWords } from "./notices.ts";
import { sendTest } from "./tell-alerts.ts";

interface AlertPorts {
  readonly store: AlertStore;
  readonly channels: readonly AlertChannelClient[];
  readonly newId: () => string;
}

const { post } = operationsOf<AlertPorts>();

const alertName = z.string().meta({ description: "Of the rule, as listed.", example: "crawler-offline" });

function checkName(name: string): void {
  if ((alertNames as readonly string[]).includes(name)) return;
  throw new Fault(404, `There is no alert ${name.slice(0, 60)}; known are ${alertNames.join(", ")}.`);
}

const acknowledgeAlert = post({
  ...{ path: "/api/alerts/{name}/acknowledge", needs: "fleet-write" },
  label: "Acknowledge",
  summary: "Acknowledge an alert: somebody is at it",
  description:
    "It is listed apart, counts in no metric and no exit code, and nobody is told of it again, until it ends or names something new.",
  input: z.object({
    name: alertName,
    note: z.string().trim().max(300).default("").meta({ title: "Note for the others (optional)" }),
  }),
  output: openRecord("AlertAcknowledgement", {
    ...{ name: z.string(), by: z.string(), at: dateTime(), note: z.string() },
    targets: z.array(z.string()).describe("What it named then; anything beyond brings it back."),
  }),
  example: { note: "called the partner" },
  answer: { description: "The acknowledgement" },
  faults: { 404: "There is no such alert, or it does not hold" },
  command: {
    name: "alerts ack",
    says: "acknowledge an alert: nobody is told again until it ends or names something new",
  },
  run: async ({ input: { name, note: words }, ports, actor, now }) => {
    checkName(name);
    const by = { by: actor.name, at: now.toISOString(), note: words };
    const acknowledged = await ports.store.acknowledge(name, by);
    if (acknowledged === null)
      throw new Fault(404, `${name} does not hold now, or has begun within the last ten seconds.`);
    return { name, ...acknowledged };
  },
  change: ({ name, note: words }) => ({
    ...{ action: "alert-acknowledged", target: name, after: { note: words } },
    words: `${name} is acknowledged${words === "" ? "" : `: ${words}`}`,
  }),
});

const reopenAlert = post({
  ...{ path: "/api/alerts/{name}/reopen", needs: "fleet-write" },
  summary: "Withdraw the acknowledgement of an alert",
  input: z.object({ name: alertName }),
  output: openRecord("AlertReopened", { name: z.string() }),
  example: {},
  answer: { description: "What is listed again" },
  faults: { 404: "Nobody has acknowledged it" },
  command: { name: "alerts reopen", says: "withdraw the acknowledgement of an alert" },
  run: async ({ input: { name }, ports }) => {
    checkName(name);
    if (await ports.store.reopen(name)) return { name };
    throw new Fault(404, `Nobody has acknowledged ${name}.`);
  },
  change: ({ name }) => ({
    ...{ action: "alert-reopened", target: name, words: `${name} is no longer acknowledged.` },
  }),
});

const target = z.string().min(1).max(200).nullable().default(null).meta({
  title: "What",
  description: "A crawler or release that the alert names; null: all of the rule.",
});

/** Such as `crawler-offline` or `crawler-offline of athens`. */
const muteWords = (muted: { readonly name: string; readonly target: string | null }) =>
  muted.target === null ? muted.name : `${muted.name} of ${muted.target}`;

const hourMs = 3_600_000;

const mostMuteHours = 720;

const muteAlert = post({
  ...{ path: "/api/alerts/{name}/mute", needs: "fleet-write" },
  label: "Mute",
  summary: "Mute an alert until an hour that is named",
  description:
    "It is in no list, metric or exit code until then, and stands below the alerts with who muted it and why. A mute that is there is replaced.",
  input: z.object({
    ...{ name: alertName, target },
    hours: z.number().min(0.1).max(mostMuteHours).meta({ title: "Hours" }),
    reason: z.string().trim().min(1).max(300).meta({ title: "Reason" }),
  }),
  output: openRecord("AlertMute", {
    ...{ name: z.string(), target: z.string().nullable(), until: dateTime() },
    ...{ reason: z.string(), mutedBy: z.string() },
  }),
  example: { target: "berlin", hours: 24, reason: "moves to another room" },
  answer: { description: "The mute" },
  faults: { 404: "There is no such alert" },
  command: {
    ...{ name: "alerts mute", says: "tell nobody of an alert until an hour that you name" },
    ...{ named: { target: "of" }, usual: () => ({ hours: 24 }) },
  },
  run: async ({ input: { name, target: of, hours, reason }, ports, actor, now }) => {
    checkName(name);
    const until = new Date(now.getTime() + hours * hourMs);
    const made = { name, target: of, until, reason, mutedBy: actor.name };
    await ports.store.mute(made, now);
    return made;
  },
  change: ({ until, reason, ...muted }) => ({
    ...{ action: "alert-muted", target: muteWords(muted), after: { until, reason } },
    words: `${muteWords(muted)} is muted until ${instantWords(until.toISOString())}: ${reason}`,
  }),
});

const unmuteAlert = post({
  ...{ path: "/api/alerts/{name}/unmute", needs: "fleet-write" },
  summary: "Unmute an alert",
  input: z.object({ name: alertName, target }),
  output: openRecord("AlertUnmuted", { name: z.string(), target: z.string().nullable() }),
  example: { target: "berlin" },
  answer: { description: "What is told again" },
  faults: { 404: "It is not muted" },
  command: { name: "alerts unmute", says: "end a mute", named: { target: "of" } },
  run: async ({ input: muted, ports, now }) => {
    checkName(muted.name);
    if (await ports.store.unmute(muted, now)) return muted;
    throw new Fault(404, `${muteWords(muted)} is not muted.`);
  },
  change: (muted) => ({
    ...{ action: "alert-unmuted", target: muteWords(muted) },
    words: `${muteWords(muted)} is no longer muted.`,
  }),
});

const testAlertChannel = post({
  ...{ path: "/api/alerts/channels/{channel}/test", needs: "fleet-write" },
  summary: "Send a test to a channel of alerts",
  description:
    "One message at once, without the attempts that an alert gets; one in half a minute to each channel.",
  input: z.object({
    channel: z.string().meta({ description: "As listed by /api/alerts.", example: "email" }),
  }),
  output: openRecord("AlertTest", {
    ...{ channel: z.string(), delivered: z.boolean() },
    words: z.string().describe("Why not; empty: it was taken."),
  }),
  example: {},
  answer: { description: "What came of it" },
  faults: {
    404: "There is no such channel",
    429: "A test was sent to it within the last half minute",
  },
  command: {
    name: "alerts test",
    says: "send a test by a channel of the coordinator's file",
    goesByFile: true,
  },
  run: async ({ input: { channel: name }, ports: { store, channels, newId }, now }) => {
    const channel = channels.find((one) => one.name === name);
    if (channel === undefined) {
      const known = channels.length === 0 ? "" : `, but ${channels.map((one) => one.name).join(", ")}`;
      throw new Fault(404, `The coordinator's file has no channel ${name.slice(0, 60)}${known}.`);
    }
    const delivery = await sendTest(channel, { store, newId, now: () => now });
    const soon = `A test was sent to ${name} within the last half minute. Try again in a moment.`;
    if (delivery === null) throw new Fault(429, soon, "Not so soon");
    const delivered = delivery.type === "delivered";
    return { channel: name, delivered, words: delivered ? "" : delivery.words };
  },
  goTo: () => "/alerts#delivery",
  change: ({ channel, delivered, words: why }) => ({
    ...{ action: "alert-channel-tested", target: channel },
    words: delivered ? `A test was delivered to ${channel}.` : `A test did not reach ${channel}: ${why}.`,
  }),
});

export const alertDeedOperations = {
  muteAlert,
  unmuteAlert,
  acknowledgeAlert,
  reopenAlert,
  testAlertChannel,
};

// The overview's section. Some alerts link to pages for operators; others see the same words without the link.

export type AlertReader = "operator" | "reader";

export function alertReader(actor: Actor): AlertReader {
  return mayDo(actor, "fleet-read") ? "operator" : "reader";
}

export function alertSection(alerts: readonly Alert[], reader: AlertReader): Node {
  const items = alerts.map(
    (alert) =>
      html`<li class="alert alert-${alert.severity}"><span class="severity">${alert.severity}</span><div>${whatLine(alert, reader)}
<p class="small">${alert.advice} <a class="mono" href="/alerts#${alert.name}">${alert.name}</a></p></div></li>`,
  );
  const all = html`<h2><a href="/alerts">Needs attention</a> ${small(countWords(alerts))}</h2><ul class="alerts">${items}</ul>`;
  return picture(alerts.length === 0 ? allWell : all, alertTable(alerts));
}

const allWell = html`<p class="all-well">Nothing needs attention.</p>`;

/** Pages that only operators may read. */
const operatorsOnly = /^\/fleet\/(incidents|trust|versions)\b/;

function whatLine({ words, link }: Alert, reader: AlertReader): Html {
  const isElsewhere = !link.startsWith("/alerts") && (reader === "operator" || !operatorsOnly.test(link));
  return html`<p class="what">${isElsewhere ? html`<a href="${link}">${words}</a>` : html`<strong>${words}</strong>`}</p>`;
}

// The page /alerts, to which messages link: all current alerts, the delivery channels, and the rules.

interface AlertListPorts {
  readonly alerts: { list(now: Date): Promise<AlertList> };
}

interface Around {
  readonly list: AlertList;
  readonly viewer: Visit;
  readonly mayChange: boolean;
}

const alerts = operationsOf<AlertListPorts>().get({
  ...{ path: "/api/alerts", needs: "read" },
  navigation: { group: "Fleet", order: 50, entry: "Alerts" },
  alsoFound: "warnings incidents mute silence snooze",
  summary: "What needs attention now",
  description: `The same list as on top of the overview, of \`nearcrawl alerts\`, and of the metric nearcrawl_alerts. The
runbook (alerts) has a section for each name. Answers within 2 s while the database is gone, too: then with what the
coordinator knows of itself (\`incomplete\`).`,
  input: z.object({}),
  output: alertList,
  run: async ({ ports, now }) => await ports.alerts.list(now),
  view: (list, { viewer }) => {
    const { at, alerts: open, acknowledged, muted, incomplete } = list;
    const mayChange = mayDo(viewer.actor, "fleet-write") && viewer.formToken !== null;
    const around = { list, viewer, mayChange };
    const counts = [
      open.length === 0 ? "none open" : countWords(open),
      acknowledged.length > 0 && `${acknowledged.length} acknowledged`,
      muted.length > 0 && `${muted.length} muted`,
    ].filter(Boolean);
    return {
      title: "Alerts",
      nodes: present([
        lead(html`<strong>${counts.join(" · ")}</strong> as of ${instant(at)}`),
        incomplete !== null &&
          warning(`This is not all: ${incomplete}. Here is what the coordinator knows of itself.`),
        (open.length > 0 || incomplete === null) && openAlerts(around),
        acknowledged.length > 0 && acknowledgedSection(around),
        muted.length > 0 && mutedSection(around),
        incomplete === null && deliverySection(list),
        picture(ruleSection(around)),
      ]),
    };
  },
});

export const alertOperations = { alerts };

const columnsOf = <Row extends Alert>(...more: readonly Column<Row>[]): Column<Row>[] => [
  column("severity", "Severity", ({ severity }) => severity),
  column("name", "Alert", ({ name }) => name),
  column("words", "What is the matter", ({ words }) => words),
  ...more,
];

/** The table for terminals and CSV, which is followed by the advice. */
const alertTable = (rows: readonly Alert[], ifNone = "Nothing needs attention.") =>
  group("", [
    table<Alert>({
      ...{ label: "Alerts", rows, empty: [ifNone, ""] },
      columns: columnsOf(
        column("advice", null, ({ advice }) => advice),
        column("since", "Since", ({ since }) => since && instant(since), { value: ({ since }) => since }),
      ),
    }),
    list(rows.map(({ name, advice }) => html`${name}: ${advice}`)),
  ]);

function openAlerts(around: Around): Node {
  const rows = around.list.alerts;
  const cards = rows.map((alert) => alertCard(alert, around, deedsFor(alert, around)));
  return picture(
    rows.length === 0 ? allWell : html`<section><ul class="alerts">${cards}</ul></section>`,
    // The lead already counts the open alerts.
    alertTable(rows, ""),
  );
}

function alertCard(alert: Alert, { list, viewer }: Around, deeds: Html | false, more: Html = nothing): Html {
  const { name, severity, advice } = alert;
  return html`<li class="alert alert-${severity}" id="${name}"><span class="severity">${severity}</span><div>
${whatLine(alert, alertReader(viewer.actor))}
<p class="small alert-facts"><span class="mono">${name}</span>${sinceWords(alert, list)}${toldWords(alert, list)}</p>
${more}<p class="small">${advice}</p>
<div class="alert-actions">${runbookPart(name)}${deeds}</div></div></li>`;
}

function sinceWords({ since }: Alert, { at }: AlertList): Html {
  return since === null
    ? html`<span>just now</span>`
    : html`<span>since ${instant(since)}, ${ago(since, at)}</span>`;
}

function toldWords({ toldAt, severity }: Alert, { at, channels, incomplete }: AlertList): Html {
  if (incomplete !== null) return nothing;
  if (toldAt !== null) return html`<span>sent ${ago(toldAt, at)}</span>`;
  const hears = channels.some(({ least }) => isGraveEnough(severity, least));
  return html`<span>${hears ? "not sent yet" : "no channel is told of it"}</span>`;
}

const isGraveEnough = (severity: Alert["severity"], least: Alert["severity"]) =>
  alertSeverities.indexOf(severity) <= alertSeverities.indexOf(least);

function runbookPart(name: string): Html {
  const markdown = listedRules.find((rule) => rule.name === name)?.runbook ?? "";
  if (markdown === "") return nothing;
  return fold("Runbook", ` about ${name}`, html`<div class="runbook">${markdownHtml(markdown)}</div>`);
}

/** `more` distinguishes several folds for screen readers. */
const fold = (title: string, more: string, body: Html) =>
  html`<details class="alert-more"><summary>${title}<span class="hidden">${more}</span></summary>${body}</details>`;

const usualMuteHours = 24;

function deedsFor({ name, targets }: Alert, { viewer, mayChange }: Around): Html | false {
  const path = { name };
  const named = targets.map(bareTarget).map((one) => [one, one] as const);
  const acknowledge = [
    form({ operation: acknowledgeAlert, path }),
    note("Nobody is told of it again until it ends or names something new."),
  ];
  const mute = form({
    ...{ operation: muteAlert, path, values: { hours: usualMuteHours } },
    ...{ without: named.length === 0 ? ["target"] : [] },
    choices: { target: Object.fromEntries([["", "all of it"] as const, ...named]) },
  });
  return (
    mayChange &&
    html`${fold("Acknowledge…", ` ${name}`, nodesHtml(acknowledge, viewer))}${fold("Mute…", ` ${name}`, nodesHtml([mute], viewer))}`
  );
}

function acknowledgedSection(around: Around): Node {
  const { acknowledged, at } = around.list;
  const cards = acknowledged.map((alert) => {
    const { name, by, note: words } = alert;
    const reopen = actions({ operation: reopenAlert, path: { name }, label: `Reopen ${name}` });
    const said = html`<p>Acknowledged by <bdi>${by}</bdi>, ${ago(alert.at, at)}${words && html`: <bdi>${words}</bdi>`}</p>`;
    return alertCard(alert, around, around.mayChange && nodesHtml([reopen], around.viewer), said);
  });
  const text = table<AlertList["acknowledged"][number]>({
    ...{ label: "Acknowledged", rows: acknowledged, empty: ["None.", ""] },
    columns: columnsOf(
      column("by", "By", ({ by }) => by),
      column("at", "At", (one) => instant(one.at), { value: (one) => one.at }),
      column("note", "Note", (one) => one.note),
    ),
  });
  return section("Acknowledged", [picture(html`<ul class="alerts">${cards}</ul>`, text)]);
}

function mutedSection({ list: { muted }, viewer, mayChange }: Around): Node {
  const cards = muted.map((one) => {
    const { name, severity, mutedTarget, mutedBy } = one;
    const unmute = actions({
      ...{ operation: unmuteAlert, path: { name }, values: { target: mutedTarget ?? "" } },
      label: `Unmute ${name}`,
    });
    return html`<li class="alert alert-${severity}"><span class="severity">${severity}</span><div>
<p class="what"><strong>${one.words}</strong></p><p class="small alert-facts"><span class="mono">${name}</span>${
      mutedTarget !== null && html`<span>only <bdi>${mutedTarget}</bdi></span>`
    }<span>until ${instant(one.until)}</span></p><p>Muted by <bdi>${mutedBy}</bdi>: <bdi>${one.reason}</bdi></p>${
      mayChange && html`<div class="alert-actions">${nodesHtml([unmute], viewer)}</div>`
    }</div></li>`;
  });
  const text = table<AlertList["muted"][number]>({
    ...{ label: "Muted", rows: muted, empty: ["None.", ""] },
    columns: columnsOf(
      column("muted_target", "Only", ({ mutedTarget }) => mutedTarget),
      column("until", "Until", ({ until }) => instant(until), { value: ({ until }) => until }),
      column("muted_by", "By", ({ mutedBy }) => mutedBy),
      column("reason", "Reason", ({ reason }) => reason),
    ),
  });
  return section("Muted", [picture(html`<ul class="alerts">${cards}</ul>`, text)]);
}

const leastWords = {
  critical: "critical alone",
  warning: "critical, warning",
  info: "everything",
} as const satisfies Record<Alert["severity"], string>;

const deliverySection = ({ channels, at }: AlertList) =>
  section(
    "Delivery",
    [
      table<AlertList["channels"][number]>({
        ...{ label: "Channels", rows: channels },
        columns: [
          column("name", "Channel", ({ name }) => name),
          column(
            "place",
            "Sends to",
            ({ kind, place }) => (kind === "email" ? place : `webhook at ${place}`),
            {
              kind: "break",
            },
          ),
          column("least", "Told of", ({ least }) => leastWords[least]),
          column("delivered_at", "Last delivered", ({ deliveredAt: last }) => last && ago(last, at), {
            ...{ none: "never", value: ({ deliveredAt }) => deliveredAt },
          }),
          column("state", "State", (one) => channelState(one, at), { kind: "wide break" }),
        ],
        actions: ({ name: channel }) => [
          { operation: testAlertChannel, path: { channel }, label: "Send a test" },
        ],
        empty: [
          "No delivery channel.",
          html`Add a webhook (<code>[[alerts.webhooks]]</code>) or e-mail (<code>[alerts.email]</code>) to the coordinator’s file
and start it again; the runbook (monitoring) has examples.`,
        ],
      }),
    ],
    { id: "delivery" },
  );

function channelState(channel: AlertList["channels"][number], at: string): Html {
  const { failingSince, failures, failure, deliveredAt, waiting } = channel;
  const queued = waiting > 0 && `; ${howMany(waiting, "alert")} waiting`;
  if (failingSince === null) return html`${deliveredAt === null ? "not used yet" : "works"}${queued}`;
  return html`<strong class="bad">failing</strong> since ${ago(failingSince, at)}, ${howMany(failures, "attempt")}:
<bdi>${failure}</bdi>${queued}`;
}

function ruleSection(around: Around): Html {
  return html`<section><h2 id="rules">Rules</h2>
<p class="small">Each rule is also the metric <code>nearcrawl_alerts{name="…"}</code>, and <code>nearcrawl alerts</code> ends with
exit code 4 while one finds something that nobody has acknowledged or muted.</p>
<ul class="rules">${listedRules.map((rule) => ruleEntry(rule, around))}</ul></section>`;
}

/** The rule's name is the anchor for messages, unless an active alert already has it. */
function ruleEntry({ name, looksFor, severity, advice, runbook }: AlertRule, { list }: Around): Html {
  const isShown = [...list.alerts, ...list.acknowledged].some((alert) => alert.name === name);
  const words = html`<span class="mono">${name}</span> <span class="severity severity-${severity}">${severity}</span>
<span class="looks-for">${looksFor}</span>`;
  const body = html`<div class="runbook"${!isShown && html` id="${name}"`}>${markdownHtml(`${advice}\n\n${runbook}`)}</div>`;
  return html`<li><details><summary>${words}</summary>${body}</details></li>`;
}

// Renders the runbook's Markdown: paragraphs, lists, code, emphasis and links. Everything else remains text, and all text is
// escaped. Links to other files of the runbook become their names, because the pages do not have them.

function markdownHtml(markdown: string): Html {
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

/** Matches code, links, bold and emphasis. */
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

/** Matches paths of pages, which become links. */
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
