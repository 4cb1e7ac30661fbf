/** /policies and /api/policies: what holds, what a change would come to, and the change. */

import { mayDo } from "#core/actor";
import type { ActionFault, AskedAction, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { isPolicyName, type PolicyValue, policyOf, valueFromText } from "./catalogue.ts";
import { type ChangeFault, changeWords, savePolicies, weighPolicies } from "./change.ts";
import { mostSearched, type PolicyList, policiesPage, policyPreviewPage } from "./page.ts";
import { previewPolicies } from "./preview/preview.ts";
import type { PreviewPorts } from "./preview/types.ts";
import { settingsApi } from "./settings-api.ts";
import type { PolicyStore } from "./settings-store.ts";
import {
  auditedChange,
  policiesAnswer,
  previewAnswer,
  searchedPolicies,
  withoutNames,
} from "./settings-view.ts";

export interface PolicyRoutePorts extends PreviewPorts {
  readonly store: PolicyStore;
}

/** Previews at once: each takes up to a second of the processor's time. */
const mostPreviews = 2;
const busy: ActionFault = {
  type: "fault",
  status: 429,
  title: "Others are looking",
  words: `${mostPreviews} previews are being computed already. Try again in a few seconds.`,
};

export function policyRoutes(ports: PolicyRoutePorts): WebPart {
  const { store } = ports;
  let underWay = 0;
  return ({ views, actions }) => {
    views.describe({
      path: "/policies",
      operation: settingsApi.policies,
      view: async ({ visit, query }) => {
        const list = query("show") || "basic";
        if (!isPolicyList(list)) return `show: must be one of ${policyLists.join(", ")}`;
        const text = query("q").trim().slice(0, mostSearched);
        const full = await policiesAnswer(store);
        const answer = mayDo(visit.actor, "audit-read") ? full : withoutNames(full);
        const asked = { text, changedOnly: list === "changed", basicOnly: query("show") === "basic" };
        const body = (viewer: PageViewer) => policiesPage({ answer, viewer, list, text });
        return { status: 200, value: searchedPolicies(answer, asked), title: "Policies", body };
      },
    });
    actions.describe({
      path: "/policies/preview",
      operation: settingsApi.previewPolicies,
      fromForm: formBody,
      act: async ({ body }) => {
        const weighed = await weighPolicies(body, store);
        if (weighed.type === "fault") return await refused(weighed, body.values, store);
        if (underWay >= mostPreviews) return busy;
        underWay += 1;
        const effects = await previewPolicies(weighed.step, ports).finally(() => {
          underWay -= 1;
        });
        const preview = previewAnswer(weighed, effects);
        return {
          type: "shown",
          value: preview,
          title: "What would change",
          body: (viewer) => policyPreviewPage(preview, viewer),
          change: null,
        };
      },
    });
    actions.describe({
      path: "/policies",
      operation: settingsApi.changePolicies,
      fromForm: (values) => ({ ...formBody(values), words: values.words ?? "" }),
      act: async (action) => await save(action, store),
    });
  };
}

async function save(
  { body, actor, now }: AskedAction<BodyOf<typeof settingsApi.changePolicies>>,
  store: PolicyStore,
) {
  const weighed = await weighPolicies(body, store);
  if (weighed.type === "fault") return await refused(weighed, body.values, store);
  const saved = await savePolicies(weighed, { name: actor.name, words: body.words, now }, store);
  if (typeof saved !== "number") return await refused(saved, body.values, store);
  const { changes } = previewAnswer(weighed, []);
  return {
    type: "done",
    value: { version: saved, changes },
    goTo: "/policies",
    said: `Saved as version ${saved}: ${changeWords(weighed).join("; ")}. Running coordinators follow at once.`,
    change: auditedChange(weighed, body.words),
  } as const;
}

/** The policies once more, as they are now, with what was typed. */
async function refused(
  fault: ChangeFault,
  values: Readonly<Record<string, PolicyValue | null>>,
  store: PolicyStore,
): Promise<ActionFault> {
  const answer = await policiesAnswer(store);
  const typed = Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, typedText(value)]])),
  );
  return {
    type: "fault",
    status: fault.status,
    title: "That cannot be done",
    words: fault.words,
    again: (viewer, words) =>
      policiesPage({ answer, viewer, list: listOf(values), text: "", refused: { words, typed } }),
  };
}

const policyLists: readonly PolicyList[] = ["basic", "all", "changed"];

const isPolicyList = (text: string): text is PolicyList => (policyLists as readonly string[]).includes(text);

/** What was typed has to be there. */
function listOf(values: Readonly<Record<string, unknown>>): PolicyList {
  const names = Object.keys(values);
  return names.every((name) => isPolicyName(name) && policyOf(name).basic) ? "basic" : "all";
}

const typedText = (value: PolicyValue) =>
  typeof value === "boolean" ? (value ? "yes" : "no") : String(value);

/** Fields by the policies' names; `back` and `back:NAME`: to the file's value. */
function formBody(fields: Readonly<Record<string, string>>) {
  const values: Record<string, PolicyValue | null> = {};
  const back = fields.back;
  for (const [field, text] of Object.entries(fields)) {
    if (back === undefined && isPolicyName(field)) values[field] = valueFromText(field, text);
    if (field.startsWith("back:")) values[field.slice("back:".length)] = null;
  }
  if (back !== undefined) values[back] = null;
  return {
    values,
    basedOn: wholeNumber(fields["based-on"]),
    takeBack: fields["take-back"] === undefined ? null : wholeNumber(fields["take-back"]),
  };
}

/** What is none is left to the body's schema to refuse. */
const wholeNumber = (text: string | undefined) => (/^\d{1,10}$/.test(text ?? "") ? Number(text) : -1);
