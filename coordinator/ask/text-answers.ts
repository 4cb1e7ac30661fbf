/**
 * The third output beside HTML and JSON: a client that accepts text/plain, as commands do, gets terminal text. `text/plain;
 * width=80; colours=1; history=1` states the table width, and whether it has colours and charts.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Document } from "./operation.ts";
import { asText, documentText, type TextPaper } from "./text-rendering.ts";

/** Marks an answer that found nothing; a command then ends with exit code 3. */
export const emptyHeader = "nearcrawl-empty";

const widths = { least: 40, most: 1000 };

/** Writes an Accept header. `part` asks for the section with this id only. */
export function acceptOf(form: TextPaper | "text/csv" | "application/json", part?: string): string {
  const parameters = (paper: TextPaper) => [
    ...(paper.width === null ? [] : [`width=${paper.width}`]),
    ...(paper.colours ? ["colours=1"] : []),
    ...(paper.withHistory ? ["history=1"] : []),
  ];
  const named = typeof form === "string" ? [form] : ["text/plain", ...parameters(form)];
  return [...named, ...(part === undefined ? [] : [`part=${part}`])].join("; ");
}

/** The requested section, or the whole document when none is requested or found. */
export function partOf(document: Document, { headers }: FastifyRequest): Document {
  const [, part] = /;\s*part=([\w-]+)/.exec(headers.accept ?? "") ?? [];
  if (part === undefined) return document;
  const { csv: _, ...rest } = document;
  const nodes = asText(document.nodes).filter((one) => one.type === "section" && one.id === part);
  return nodes.length === 0 ? document : { ...rest, nodes };
}

/** Null: the request does not ask for text. */
export function paperOf({ headers }: FastifyRequest): TextPaper | null {
  const accept = headers.accept ?? "";
  if (!/^text\/plain\b/.test(accept)) return null;
  const [, digits] = /;\s*width=(\d{1,4})\b/.exec(accept) ?? [];
  const width = digits === undefined ? null : Math.min(widths.most, Math.max(widths.least, Number(digits)));
  const isAsked = (name: string) => new RegExp(`;\\s*${name}=1\\b`).test(accept);
  return { width, colours: isAsked("colours"), withHistory: isAsked("history") };
}

interface Told {
  readonly document: Document | undefined;
  /** The sentence that says what was done. */
  readonly said?: string | undefined;
}

export function sendText(reply: FastifyReply, paper: TextPaper, { document, said = "" }: Told): FastifyReply {
  const text = document === undefined ? "" : documentText(document, paper);
  const parts = [said, text].filter((one) => one !== "");
  return reply.type("text/plain; charset=utf-8").send(`${parts.join("\n")}\n`);
}
