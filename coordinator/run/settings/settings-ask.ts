/** The /policies page: current values, their effect, the preview and the history of changes, and the change itself. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import {
  column,
  facts,
  folded,
  lead,
  list as listOfItems,
  note,
  picture,
  plain,
  present,
  section,
  table,
  warning,
} from "../../ask/document.ts";
import { type Document, Fault, type Node, operationsOf } from "../../ask/operation.ts";
import type { Visit } from "../../web/access.ts";
import { pageScript } from "../../web/assets.ts";
import { options, small } from "../../web/components.ts";
import { instant } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import { formToken, type PageViewer } from "../../web/page-frame.ts";
import {
  formBody,
  isPolicyName,
  type PolicyDefinition,
  type PolicyValue,
  policyCommands,
  policyGroups,
  policyOf,
  rangeText,
  setAtStart,
  shortRange,
  valueIn,
  valueText,
} from "./catalogue.ts";
import {
  type ChangeFault,
  changeWords,
  type KnownPolicies,
  knownPolicies,
  type PreviewPorts,
  savePolicies,
  valuesOf,
  type WeighedChange,
  weighPolicies,
} from "./change.ts";
import { previewPolicies as effectsOf } from "./preview/preview.ts";
import { previewDocument } from "./preview/preview-ask.ts";
import type { PolicyName } from "./schema.ts";
import {
  type PoliciesAnswer,
  type PreviewAnswer,
  policies as policiesSchema,
  policyPreview,
  type ShownPolicy,
  type ShownVersion,
  savedPolicies,
} from "./settings-api.ts";
import type { PolicyStore } from "./settings-store.ts";

interface PolicyPorts extends PreviewPorts {
  readonly store: PolicyStore;
  readonly previews: { underWay: number };
}

const { get, post } = operationsOf<PolicyPorts>();

const mostVersion = 2 ** 31 - 1;
const version = z.int().min(0).max(mostVersion);

const wanted = {
  values: z
    .record(z.string().max(60), z.union([z.number(), z.boolean(), z.string().max(60), z.null()]))
    .default({})
    .describe("By the policy's name; null: back to the file's value."),
  takeBack: version
    .nullable()
    .default(null)
    .describe("What this version changed goes back to what it was before."),
};

const changeFaults = {
  400: "The body is not of the stated form",
  404: "There is no such version to revert",
  409: "Somebody has changed something since basedOn; nothing is changed",
  422: "An invalid value, or values that contradict each other; nothing is changed",
};

const mostPreviews = 2;

const previewPolicies = post({
  ...{ path: "/api/policies/preview", needs: "policy-write" },
  summary: "Preview a change; nothing is saved",
  description:
    "Computed within two seconds from samples of what the crawl has done; each effect says what it was computed from and what it does not cover.",
  input: z.object({ ...wanted, basedOn: version.nullable().default(null) }),
  output: policyPreview,
  example: { values: { "delegation.lambdaMs": 5 } },
  answer: { description: "What would change" },
  faults: changeFaults,
  fromForm: formBody,
  command: policyCommands.preview,
  run: async ({ input, ports }): Promise<PreviewAnswer> => {
    const weighed = await weighPolicies(input, ports.store);
    if (weighed.type === "fault") throw await refusal(weighed, input.values, ports.store);
    const { previews } = ports;
    const busy = `${mostPreviews} previews are being computed already. Try again in a few seconds.`;
    if (previews.underWay >= mostPreviews) throw new Fault(429, busy, "Others are looking");
    previews.underWay += 1;
    const effects = await effectsOf(weighed.step, ports).finally(() => {
      previews.underWay -= 1;
    });
    return { basedOn: weighed.basedOn, takesBack: weighed.takesBack, changes: stepsOf(weighed), effects };
  },
  view: previewDocument,
});

const changePolicies = post({
  ...{ path: "/api/policies", needs: "policy-write" },
  summary: "Change policies, all of them or none",
  description:
    "basedOn is the version of GET /api/policies or of the preview: if somebody has changed " +
    "something since, nothing is changed (409). The change is in the audit log and can be " +
    "reverted.",
  input: z.object({
    ...wanted,
    basedOn: version
      .nullable()
      .describe(
        "Of the policies or of their preview: refused when somebody has changed something since. Null: on whatever is in force.",
      ),
    words: z.string().trim().max(300).default("").describe("Why, for the history; 300 characters at most."),
  }),
  output: savedPolicies,
  example: { values: { "delegation.lambdaMs": 5 }, basedOn: 3, words: "fewer probes over the holidays" },
  answer: { description: "Saved" },
  faults: changeFaults,
  fromForm: (values) => ({ ...formBody(values), words: values.words ?? "" }),
  command: policyCommands.change,
  run: async ({ input, ports: { store }, actor, now }) => {
    const weighed = await weighPolicies(input, store);
    if (weighed.type === "fault") throw await refusal(weighed, input.values, store);
    const { words } = input;
    const saved = await savePolicies(weighed, { name: actor.name, words, now }, store);
    if (typeof saved !== "number") throw await refusal(saved, input.values, store);
    return { version: saved, changes: stepsOf(weighed), weighed, words };
  },
  told: ({ version: saved, changes }) => ({ version: saved, changes }),
  said: ({ version: saved, weighed }) =>
    `Saved as version ${saved}: ${changeWords(weighed).join("; ")}. Running coordinators follow at once.`,
  change: ({ weighed, words }) => auditedChange(weighed, words),
});

const stepsOf = ({ changes, step }: WeighedChange): PreviewAnswer["changes"] =>
  changes.map(({ name, after }) => ({
    ...{ name, before: valueIn(step.before, name), after: valueIn(step.after, name) },
    toFile: after === null,
  }));

function auditedChange(weighed: WeighedChange, words: string) {
  const [first, ...more] = weighed.changes;
  const taken = weighed.takesBack === null ? "" : `reverts version ${weighed.takesBack}: `;
  const why = words === "" ? "" : `; ${words}`;
  return {
    action: "policy-changed",
    target: more.length === 0 ? first!.name : null,
    words: `${taken}${changeWords(weighed).join("; ")}${why}`,
    before: valuesOf(weighed, "before"),
    after: valuesOf(weighed, "after"),
  };
}

/** Shows the current policies again, with what was typed. */
async function refusal(
  { status, words }: ChangeFault,
  values: Readonly<Record<string, PolicyValue | null>>,
  store: PolicyStore,
): Promise<Fault> {
  const answer = await policiesAnswer(store);
  const typed = Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, fieldText(value)]])),
  );
  // The page must show every field that was typed.
  const isBasic = Object.keys(values).every((name) => isPolicyName(name) && policyOf(name).basic);
  const show = isBasic ? undefined : "all";
  const refused = { words, typed };
  const again = (viewer: Visit) => policiesDocument({ answer, viewer, show, text: "", refused });
  return Object.assign(new Fault(status, words), { again });
}

// The policies as shown to people and programs: value, default, bounds, author and history.

const mostSearched = 100;

const policies = get({
  ...{ path: "/api/policies", needs: "read" },
  navigation: { group: "Fleet", order: 60, entry: "Policies", tab: "Policies" },
  alsoFound: "settings configuration change",
  summary: "The policies: what is in force, defaults, changes and the latest 50 versions",
  description:
    "Scope read, where reading needs one. A value is that of the coordinator's file unless an " +
    "operator has changed it; running coordinators follow changes at once.",
  input: z.object({
    show: z.enum(["basic", "all", "changed"]).optional().meta({
      description:
        "basic: the dozen that are usually changed; changed: those that differ from the default; omitted: all.",
      example: "changed",
    }),
    q: z.string().default("").meta({
      description: "Words that stand in the name, title, help or group of a policy.",
      example: "probe",
    }),
  }),
  output: policiesSchema,
  command: policyCommands.read,
  run: async ({ input: { show, q }, ports, actor }) => {
    const answer = await policiesAnswer(ports.store);
    const text = q.trim().slice(0, mostSearched);
    return { ...(mayDo(actor, "audit-read") ? answer : withoutNames(answer)), show, text };
  },
  told: ({ show, text, ...answer }) => searchedPolicies(answer, { show, text }),
  view: ({ show, text, ...answer }, { viewer }) => policiesDocument({ answer, viewer, show, text }),
});

export const policyOperations = { policies, changePolicies, previewPolicies };

const shownVersions = 50;

async function policiesAnswer(store: Pick<PolicyStore, "read" | "history">): Promise<PoliciesAnswer> {
  const [stored, past] = [await store.read(), await store.history(shownVersions)];
  const known = knownPolicies(stored);
  return {
    version: known.version,
    groups: policyGroups.map(({ name, title, policies: all }) => ({
      ...{ name, title },
      policies: all.map((policy) => shownPolicy(policy, known)),
    })),
    setAtStart,
    history: past.map((one) => ({ ...one, changedAt: one.changedAt.toISOString() })),
    ignored: known.ignored,
  };
}

function shownPolicy(policy: PolicyDefinition, { settings, file, changed }: KnownPolicies): ShownPolicy {
  const { group: _group, ...shown } = policy;
  const change = changed.get(policy.name);
  return {
    ...shown,
    value: valueIn(settings, policy.name),
    fileValue: valueIn(file, policy.name),
    changedAt: change?.changedAt.toISOString() ?? null,
    changedBy: change?.changedBy ?? null,
  };
}

interface PolicySearch {
  /** Which policies to list. Default: the basic ones on a page, all for programs. */
  readonly show: "basic" | "all" | "changed" | undefined;
  /** Words that must all occur in name, title, help or group. Empty to list all. */
  readonly text: string;
}

/** Keeps only the requested policies, and drops groups without any. */
function searchedPolicies(answer: PoliciesAnswer, { show, text }: PolicySearch): PoliciesAnswer {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = answer.groups.map((of) => ({
    ...of,
    policies: of.policies.filter((policy) => {
      const searched = `${policy.name} ${policy.title} ${policy.help} ${of.title}`.toLowerCase();
      const isAsked = words.every((word) => searched.includes(word));
      return isAsked && (policy.basic || show !== "basic") && (isChanged(policy) || show !== "changed");
    }),
  }));
  return { ...answer, groups: groups.filter(({ policies: all }) => all.length > 0) };
}

const isChanged = ({ value, default: usual }: ShownPolicy): boolean => value !== usual;

/** Removes the names of authors for people who may not read the audit log. */
function withoutNames(answer: PoliciesAnswer): PoliciesAnswer {
  const unnamed = <Changed extends { readonly changedBy: string | null }>(one: Changed): Changed =>
    one.changedBy === null ? one : { ...one, changedBy: "an operator" };
  return {
    ...answer,
    groups: answer.groups.map((of) => ({ ...of, policies: of.policies.map(unnamed) })),
    history: answer.history.map(unnamed),
  };
}

interface PoliciesPage extends PolicySearch {
  readonly answer: PoliciesAnswer;
  readonly viewer: PageViewer;
  readonly refused?: { readonly words: string; readonly typed: Readonly<Record<string, string>> };
}

interface Around extends PoliciesPage {
  readonly mayChange: boolean;
}

function policiesDocument(page: PoliciesPage): Document {
  const { answer, viewer, refused } = page;
  const isOperator = mayDo(viewer.actor, "policy-write");
  const around = { ...page, mayChange: isOperator && viewer.formToken !== null };
  return {
    title: "Policies",
    nodes: present([
      lead(
        "Settings of the fleet's behaviour. A change takes effect at once in every running coordinator; its effect is shown before it is saved.",
      ),
      refused !== undefined && picture(html`<p class="fault" role="alert">${refused.words}</p>`),
      !isOperator &&
        note(
          html`You can view the policies. Only operators can change them (scope policy-write)${
            viewer.signedInAs === null && html`: <a href="/sign-in">sign in</a>`
          }.`,
        ),
      ...answer.ignored.map((fault) =>
        warning(`A stored policy is ignored, and the file’s value holds: ${fault}.`),
      ),
      picture(html`${finder(page)}${listed(around)}`, inForce(page)),
      historySection(answer),
      folded(html`Needs a restart <span class="count">${answer.setAtStart.length}</span>`, [
        plain(
          html`These cannot be changed while a coordinator runs. Set them in its file (<code>nearcrawl coordinator --config FILE</code>) and restart it.`,
        ),
        listOfItems(
          answer.setAtStart.map(
            ({ names, why }) =>
              html`${names.map((name, at) => html`${at > 0 && ", "}<code>${name}</code>`)}: ${why}`,
          ),
          "at-start",
        ),
      ]),
      picture(pageScript("policies.js")),
    ]),
  };
}

/** A table, or a single policy with its help, for outputs other than the page. */
function inForce({ answer, show, text }: PoliciesPage): Node {
  const all = searchedPolicies(answer, { show, text }).groups.flatMap(({ policies: of }) => of);
  const [named] = all.filter(({ name }) => name === text);
  const { version: latest } = answer;
  return section(
    all.length === 0
      ? ""
      : latest === 0
        ? "In force: nothing has been changed"
        : `In force: version ${latest}`,
    [
      named !== undefined && plain(`${named.title}: ${named.help}`),
      named !== undefined &&
        facts(
          ["In force", shown(named, named.value)],
          ["File", shown(named, named.fileValue)],
          ["Default", `${shown(named, named.default)} (${named.origin})`],
          ["May be", rangeText(policyOf(named.name))],
          ["Changed", named.changedBy === null ? "by nobody" : changedWords(named)],
        ),
      named === undefined &&
        table<ShownPolicy>({
          ...{ label: "Policies", rows: all, empty: ["No policy matches.", ""] },
          columns: [
            column("name", "Policy", ({ name }) => name),
            column("value", "In force", (one) => shown(one, one.value), { value: ({ value }) => value }),
            column("default", "Default", (one) => shown(one, one.default), { value: (one) => one.default }),
            column("changed_by", "Changed by", changedWords, {
              none: "",
              value: ({ changedBy }) => changedBy,
            }),
          ],
        }),
    ],
    { id: "in-force" },
  );
}

const changedWords = ({ changedBy, changedAt }: ShownPolicy) =>
  changedBy === null ? null : `${changedBy}, ${changedAt!.slice(0, 16).replace("T", " ")}`;

function listed(around: Around): Html {
  const { answer, show, text, mayChange, viewer } = around;
  const isBasic = (show ?? "basic") === "basic" && text === "";
  const { groups } = searchedPolicies(answer, { text, show: isBasic ? "basic" : show });
  if (groups.length === 0) return nothingFound(around);
  // The basic policies are one list. All policies are folded by group, with groups open if a search matched.
  const rows = isBasic
    ? html`<section class="policies">${groups.flatMap((of) => of.policies.map((policy) => policyRow(policy, around, of.title)))}</section>`
    : html`${groups.map((of) => foldedGroup(of, around, show === "changed" || text !== ""))}`;
  if (!mayChange) return rows;
  return html`<form class="policy-form" method="post" action="/policies/preview">
${formToken(viewer)}<input type="hidden" name="based-on" value="${answer.version}">
${rows}
<p class="actions"><button type="submit">Preview</button><span class="small" id="policy-count">Shows what would change. Nothing is saved yet.</span></p>
</form>`;
}

function finder({ answer, show = "basic", text }: PoliciesPage): Html {
  const all = answer.groups.flatMap(({ policies: of }) => of);
  const tabs = [
    ["basic", "Basic", all.filter(({ basic }) => basic).length],
    ["all", "All", all.length],
    ["changed", "Modified", all.filter(isChanged).length],
  ] as const;
  const tab = ([name, title, count]: (typeof tabs)[number]) => {
    const isCurrent = text === "" && show === name && html` aria-current="true"`;
    const href = pathWith("/policies", { show: name === "basic" ? null : name });
    return html`<a href="${href}"${isCurrent}>${title} <span class="count">${count}</span></a>`;
  };
  return html`<div class="policy-finder"><nav class="policy-tabs"
aria-label="Which policies">${tabs.map(tab)}</nav>
<form class="policy-search" role="search" action="/policies"><label class="hidden" for="policy-q">Search the
policies</label><input id="policy-q" type="search" name="q" value="${text}" maxlength="${mostSearched}"
placeholder="Search ${all.length} policies" autocomplete="off"><button class="quiet slim">Search</button></form></div>`;
}

function nothingFound({ show, text }: PoliciesPage): Html {
  if (text !== "")
    return html`<div class="empty"><p><strong>No policy matches <bdi>${text}</bdi>.</strong> <a href="/policies?show=all">All policies</a></p></div>`;
  return show === "changed"
    ? html`<div class="empty"><p><strong>Every policy has its default.</strong> <a href="/policies">Basic policies</a></p></div>`
    : nothing;
}

function foldedGroup(
  { name, title, policies: all }: PoliciesAnswer["groups"][number],
  around: Around,
  isOpen: boolean,
): Html {
  const changed = all.filter(isChanged).length;
  const typed = around.refused?.typed ?? {};
  const holdsTyped = all.some((one) => (typed[one.name] ?? fieldText(one.value)) !== fieldText(one.value));
  const count = html`<span class="count">${all.length}</span>${changed > 0 && html` <span class="small">${changed} changed</span>`}`;
  return html`<details class="policies" id="group-${name}"${(isOpen || holdsTyped) && html` open`}><summary><h2
id="${name}">${title}</h2> ${count}</summary>
${name === "retention" && retentionNote}${all.map((policy) => policyRow(policy, around))}</details>`;
}

const retentionNote = html`<p class="small">What each table takes now, and what these come to: <a href="/storage">Storage</a>.</p>`;

/** `groupTitle` is shown where policies of several groups are listed together. */
function policyRow(policy: ShownPolicy, around: Around, groupTitle?: string): Html {
  const { mayChange, refused } = around;
  const { name, title, help, origin } = policy;
  return html`<div class="policy${isChanged(policy) ? " policy-changed" : ""}" id="${name}">
<div class="policy-words">
<p class="policy-title">${mayChange ? html`<label for="field-${name}">${title}</label>` : html`<strong>${title}</strong>`}
<code>${name}</code>${groupTitle !== undefined && html` ${small(groupTitle)}`}</p>
<p class="small" id="help-${name}">${help} <span class="policy-origin">Default: ${origin}.</span></p>
</div>
<div class="policy-value">
${mayChange ? policyField(policy, refused?.typed[name]) : html`<p class="policy-now">${shown(policy, policy.value)}</p>`}
<p class="small" id="range-${name}">${rangeWords(policy)}</p>
${changeLine(policy, around)}
${mayChange && html`<div class="policy-effect" aria-live="polite" hidden></div>`}
</div>
</div>`;
}

/** For example `0 to 1,000, default 2 ms; the file says 5 ms`. */
function rangeWords(policy: ShownPolicy): string {
  const usual = `default ${shown(policy, policy.default)}`;
  const range = policy.kind.type === "number" ? `${shortRange(policy.kind)}, ` : "";
  const file =
    policy.fileValue === policy.default ? "" : `; the file says ${shown(policy, policy.fileValue)}`;
  return `${range}${usual}${file}`;
}

function changeLine(policy: ShownPolicy, { mayChange, viewer }: Around): Html {
  const { name, changedBy, changedAt, fileValue } = policy;
  if (changedBy === null || changedAt === null) return nothing;
  const who = mayDo(viewer.actor, "audit-read")
    ? html`<a href="${pathWith("/audit", { action: "policy-changed" })}">${changedBy}</a>`
    : changedBy;
  return html`<p class="small">changed by ${who}, ${instant(changedAt)}</p>
${
  mayChange &&
  html`<button class="quiet slim" type="submit" name="back" value="${name}" formnovalidate>Back to
${shown(policy, fileValue)}</button>`
}`;
}

const shown = ({ name }: Pick<ShownPolicy, "name">, value: PolicyValue) => valueText(name, value);

// The input field of a policy by the kind of its value, with bounds and help.

/** `typed` is rejected input to show again. Default: the value in force. */
function policyField(policy: ShownPolicy, typed?: string): Html {
  const { name, kind, unit } = policy;
  const value = typed ?? fieldText(policy.value);
  const described = `help-${name} range-${name}`;
  if (kind.type === "number") {
    return html`<p class="policy-input">${slider(policy, kind)}<input class="number" id="field-${name}" name="${name}"
value="${value}" inputmode="${kind.whole ? "numeric" : "decimal"}" autocomplete="off" maxlength="20"
aria-describedby="${described}">${unit !== null && html`<span>${unit}</span>`}</p>`;
  }
  const choices = kind.type === "choice" ? kind.options : ["yes", "no"];
  return html`<p class="policy-input"><select id="field-${name}" name="${name}"
aria-describedby="${described}">${options(
    choices.map((one) => [one, one] as const),
    value,
  )}</select></p>`;
}

const fieldText = (value: PolicyValue) =>
  typeof value === "boolean" ? (value ? "yes" : "no") : String(value);

const sliderSteps = 200;
/** A range of up to this many units gets a linear slider, a wider one an exponential slider. */
const mostEven = 100;

/** The slider is shown by a script. Without scripts it stays hidden and sends nothing. */
function slider({ name, title }: ShownPolicy, kind: Extract<ShownPolicy["kind"], { type: "number" }>): Html {
  const { least, most, whole, above } = kind;
  const scale = most - least <= mostEven ? "even" : "powers";
  return html`<input type="range" class="slider" hidden min="0" max="${sliderSteps}" step="1" aria-label="${title}"
data-for="field-${name}" data-least="${least}" data-most="${most}" data-whole="${whole ? "yes" : "no"}"
data-above="${above ? "yes" : "no"}" data-scale="${scale}">`;
}

/** How many versions are shown. The others are folded. */
const shownAtOnce = 5;

function historySection({ history: all, version: basedOn }: PoliciesAnswer): Node {
  const versions = (rows: readonly ShownVersion[], label: string) =>
    table<ShownVersion>({
      ...{ label, rows },
      columns: [
        column("version", "Version", (one) => one.version),
        column("changed_at", "When", ({ changedAt }) => instant(changedAt), {
          value: (one) => one.changedAt,
        }),
        column("changed_by", "Who", ({ changedBy }) => changedBy),
        column(
          "changes",
          "What",
          ({ changes }) =>
            html`${changes.map(({ name, before, after }) => html`<div><code>${name}</code> ${valueOr(name, before)} → ${valueOr(name, after)}</div>`)}`,
          { kind: "wide" },
        ),
        column("words", "Why", whyWords, { kind: "wide", none: "" }),
      ],
      empty: [
        "No policy has been changed yet.",
        "Each change is listed here, with who made it and why, and can be reverted.",
      ],
      actions: ({ version: of }) => [
        {
          ...{ operation: previewPolicies, label: `Revert version ${of}` },
          values: { "based-on": basedOn, "take-back": of },
        },
      ],
    });
  const [latest, earlier] = [all.slice(0, shownAtOnce), all.slice(shownAtOnce)];
  return section(
    "History",
    [
      versions(latest, "History of the policies"),
      earlier.length > 0 &&
        folded(`${earlier.length} earlier`, [versions(earlier, "Earlier history of the policies")]),
    ],
    { id: "history" },
  );
}

const whyWords = ({ takesBack, words }: ShownVersion) =>
  takesBack === null ? words : `reverts version ${takesBack}${words === "" ? "" : `: ${words}`}`;

const valueOr = (name: PolicyName, value: PolicyValue | null): string =>
  value === null ? "the file’s value" : valueText(name, value);
