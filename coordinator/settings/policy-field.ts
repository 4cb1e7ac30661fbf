/** What a policy's value is typed into: by its kind, with its bounds and its help. */

import { type Html, html, nothing } from "../web/html.ts";
import type { ShownPolicy } from "./answer.ts";

/** `typed`: what was sent and refused, to be shown again; left out: the value in force. */
export function policyField(policy: ShownPolicy, typed?: string): Html {
  const { name, kind, unit } = policy;
  const value = typed ?? (typeof policy.value === "boolean" ? yesNo(policy.value) : String(policy.value));
  const described = `help-${name} range-${name}`;
  if (kind.type === "number") {
    return html`<p class="policy-input"><input class="number" id="field-${name}" name="${name}" value="${value}" inputmode="${kind.whole ? "numeric" : "decimal"}" autocomplete="off" maxlength="20" aria-describedby="${described}">${unit === null ? nothing : html`<span>${unit}</span>`}</p>`;
  }
  const options = kind.type === "choice" ? kind.options : ["yes", "no"];
  return html`<p class="policy-input"><select id="field-${name}" name="${name}" aria-describedby="${described}">${options.map((option) => html`<option value="${option}"${option === value ? html` selected` : nothing}>${option}</option>`)}</select></p>`;
}

const yesNo = (value: boolean) => (value ? "yes" : "no");
