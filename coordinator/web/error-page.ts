/** What a page says when it cannot be shown. */
import { type Html, html } from "./html.ts";

export interface PageError {
  readonly status: number;
  readonly title: string;
  readonly words: string;
}

export function errorBody(error: PageError): Html {
  return html`<div class="error"><p class="status">${error.status}</p><h1>${error.title}</h1><p>${error.words}</p><p><a href="/">To the overview</a></p></div>`;
}
