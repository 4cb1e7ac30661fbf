/**
 * Exports into an index of OpenSearch, or of anything with the same API: batches by `_bulk` with external versions, so that
 * what is sent twice or late changes nothing. The state of the export is a document of the index itself, so restoring,
 * copying or deleting the index does the same to the cursor.
 *
 *   429, 5xx, no answer   the request is retried after a pause that doubles, or as Retry-After says
 *   413                   the batch is sent in halves
 *   409 for a document    the target has this version or a later one
 *   400 for a document    it is left out and reported; if most of a batch is refused, the mapping is wrong and the export ends
 *   anything else         the export ends; what was taken stays, and the next one resumes there
 */

import { z } from "zod";
import { ExportError } from "#core/errors";
import type { TextsElsewhere } from "../../../crawl/changes/page-text-reads.ts";
import { termsEdition } from "../engine/document-terms.ts";
import {
  causeWords,
  engineOf,
  errorType,
  errorWords,
  type OpenSearchAnswer,
  OpenSearchHttp,
  type OpenSearchPlace,
  reasonOf,
  statusWords,
} from "../engine/opensearch-http-client.ts";
import {
  cursorId,
  indexBody,
  indexedDocument,
  keptSchema,
  storedTexts,
} from "../engine/opensearch-mapping.ts";
import type { ExportState, ExportTarget, Written } from "./export-index.ts";
import type { Operation } from "./export-operation.ts";

interface OpenSearchPorts extends OpenSearchPlace {
  readonly pause: (ms: number) => Promise<void>;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Is called with one line whenever a request has failed and will be retried. */
  readonly onTrouble: (words: string) => void;
  /** Is called with one line for each document that the engine refuses, up to `mostTold` of them. */
  readonly onRefused: (words: string) => void;
  readonly timeoutMs?: number;
}

const usualTimeoutMs = 120_000;
/** The pauses between the tries add up to about five minutes. */
const mostTries = 12;
const firstPauseMs = 500;
const longestPauseMs = 60_000;
/** The limit of one request. */
const mostBulkBytes = 5_000_000;
const removedAtOnce = 10_000;
/** At most this many refused documents are reported one by one. */
const mostTold = 5;

export class OpenSearchIndex implements ExportTarget {
  readonly #ports: OpenSearchPorts;
  readonly #http: OpenSearchHttp;
  #told = 0;
  /** Whether the index was seen to be one of ours. */
  #wasOurs = false;
  #wasComplete = false;

  constructor(ports: OpenSearchPorts) {
    this.#ports = ports;
    this.#http = new OpenSearchHttp(ports, { timeoutMs: ports.timeoutMs ?? usualTimeoutMs, connections: 2 });
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  /** Creates the index if there is none. */
  async state(): Promise<ExportState | string | null> {
    const { index } = this.#ports;
    const { status: found, body: told } = await this.#ask("GET", "/_mapping", null, [404]);
    if (found === 404) return await this.#make();
    const strange = strangeField(this.#read(mappingsSchema, told));
    if (strange !== null) {
      // A batch that comes after the index was deleted has the engine make one by itself, as it thinks fit.
      if (this.#wasOurs) {
        await this.#ask("DELETE", "", null, [404]);
        return await this.#make();
      }
      throw new ExportError(
        `the index ${index} has another mapping than Nearcrawl's (field ${strange}): name another index, or delete this one, and all pages come again`,
      );
    }
    this.#wasOurs = true;
    const { status, body } = await this.#ask("GET", `/_doc/${cursorId}`, null, [404]);
    if (status === 404) return null;
    const kept = z.object({ _source: keptSchema }).safeParse(body);
    if (!kept.success) return `its document ${cursorId} is no state of an export`;
    const { nearcrawl_cursor: cursor, terms_edition: edition, was_complete: wasComplete } = kept.data._source;
    this.#wasComplete = wasComplete;
    return edition === termsEdition ? cursor : "words are made into terms in another way since";
  }

  async #make(): Promise<string> {
    await this.#refuseOtherEngines();
    const made = await this.#ask("PUT", "", JSON.stringify(indexBody), [400]);
    if (made.status === 400 && errorType(made.body) !== "resource_already_exists_exception")
      throw new ExportError(`the index ${this.#ports.index} cannot be made: ${reasonOf(made.body)}`);
    [this.#wasOurs, this.#wasComplete] = [true, false];
    return "the index was not there";
  }

  async #refuseOtherEngines(): Promise<void> {
    const { body } = await this.#ask("GET", null, null);
    const { fault } = engineOf(body);
    if (fault !== null) throw new ExportError(`${this.#ports.origin} is ${fault}`);
  }

  async keep(state: ExportState): Promise<void> {
    this.#wasComplete ||= state.full === null;
    const kept = { nearcrawl_cursor: state, terms_edition: termsEdition, was_complete: this.#wasComplete };
    await this.#ask("PUT", `/_doc/${cursorId}`, JSON.stringify(kept satisfies z.infer<typeof keptSchema>));
  }

  async beginFull(): Promise<void> {}

  /** Deletes what was written as of an earlier change, in steps short enough to be answered within the timeout. */
  async endFull(change: number): Promise<number> {
    // Searches find only what has been refreshed.
    await this.#ask("POST", "/_refresh", "");
    const query = JSON.stringify({ query: { range: { change: { lt: change } } } });
    for (let removed = 0, conflicts = 0; ; ) {
      const { body } = await this.#ask(
        "POST",
        `/_delete_by_query?conflicts=proceed&refresh=true&max_docs=${removedAtOnce}`,
        query,
      );
      const { deleted, version_conflicts, failures } = this.#read(removalSchema, body);
      if (failures.length > 0)
        throw new ExportError(
          `old documents cannot be removed: ${JSON.stringify(failures[0]).slice(0, 300)}`,
        );
      removed += deleted;
      if (deleted === 0 && version_conflicts === 0) return removed;
      // Another process writes into the index.
      conflicts = deleted === 0 ? conflicts + 1 : 0;
      if (conflicts === mostTries)
        throw new ExportError(
          `${version_conflicts} old documents change whenever they are to be removed: does something else write into ${this.#ports.index}?`,
        );
      if (conflicts > 0) await this.#pause(conflicts);
    }
  }

  async write(operations: readonly Operation[], onIndexed: OnIndexed = () => {}): Promise<Written> {
    const written = { indexed: 0, deleted: 0, alreadyThere: 0, rejected: 0 };
    for await (const batch of batchesOf(operations)) await this.#bulk(batch, { written, onIndexed });
    return written;
  }

  documents: TextsElsewhere = async (pages) =>
    await storedTexts(pages, async (path, body) => (await this.#ask("POST", path, body)).body);

  async #bulk(batch: readonly Sent[], told: Told): Promise<void> {
    let left = batch;
    for (let tries = 1; ; tries += 1) {
      const path = "/_bulk?filter_path=errors,items.*._id,items.*.status,items.*.error";
      const answer = await this.#ask("POST", path, left.map(({ lines }) => lines).join(""), [413]);
      if (answer.status === 413) return await this.#halves(left, told);
      const { items } = this.#read(bulkSchema, answer.body);
      if (items.length !== left.length)
        throw new ExportError(`${this.name} answered ${items.length} of ${left.length} documents`);
      const outcomes = items.map((item) => Object.values(item)[0]!);
      const again = left.filter(({ operation }, at) => this.#count(operation, outcomes[at]!, told));
      this.#refuseMapping(left, outcomes);
      if (again.length === 0) return;
      if (tries === mostTries)
        throw new ExportError(`${this.name} did not take ${again.length} documents in ${tries} tries`);
      const { status, error } = outcomes[left.indexOf(again[0]!)]!;
      const words = `status ${status} for ${again.length} of ${left.length} documents: ${errorWords(error)}`;
      this.#ports.onTrouble(`${this.name}: ${words}; it is tried again`);
      await this.#pause(tries);
      left = again;
    }
  }

  async #halves(batch: readonly Sent[], told: Told): Promise<void> {
    if (batch.length === 1) {
      told.written.rejected += 1;
      this.#tell(batch[0]!.operation, "it is too large for the target (413)");
      return;
    }
    const half = Math.ceil(batch.length / 2);
    await this.#bulk(batch.slice(0, half), told);
    await this.#bulk(batch.slice(half), told);
  }

  /** Counts the outcome. Returns whether the operation should be sent again. */
  #count(operation: Operation, { status, error }: Outcome, { written, onIndexed }: Told): boolean {
    if (status === 429 || status >= 500) return true;
    if (status < 300 && operation.op === "index") {
      written.indexed += 1;
      onIndexed(operation);
    } else if (status < 300 || (status === 404 && operation.op === "delete")) written.deleted += 1;
    else if (status === 409) written.alreadyThere += 1;
    else if (status === 400) {
      written.rejected += 1;
      this.#tell(operation, errorWords(error));
    } else
      throw new ExportError(
        `${this.name} answered ${status} to document ${operation.id}: ${errorWords(error)}`,
      );
    return false;
  }

  #refuseMapping(batch: readonly Sent[], outcomes: readonly Outcome[]): void {
    const refused = outcomes.filter(({ status }) => status === 400);
    if (batch.length >= 10 && 2 * refused.length > batch.length)
      throw new ExportError(
        `${this.name} refuses ${refused.length} of ${batch.length} documents, so it is not theirs: ${errorWords(refused[0]!.error)}`,
      );
  }

  #tell(operation: Operation, words: string): void {
    this.#told += 1;
    if (this.#told > mostTold) return;
    const url = operation.op === "index" ? ` (${operation.document.url})` : "";
    this.#ports.onRefused(`document ${operation.id}${url} is left out: ${words}`);
    if (this.#told === mostTold) this.#ports.onRefused("further ones are only counted");
  }

  /** For people. */
  get name(): string {
    return this.#http.name;
  }

  /** No path: the engine's own. Returns answers of 2xx and the statuses named. All others end in an ExportError, temporary ones after many tries. */
  async #ask(
    method: "GET" | "PUT" | "POST" | "DELETE",
    path: string | null,
    body: string | null,
    expected: readonly number[] = [],
  ): Promise<OpenSearchAnswer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#http.ask(method, path, body).catch((error: unknown) => error as Error);
      const isError = answer instanceof Error;
      if (!isError && (answer.status < 300 || expected.includes(answer.status))) return answer;
      const words = isError ? causeWords(answer) : statusWords(answer);
      const mayPass = isError ? mayComeBack(answer) : answer.status === 429 || answer.status >= 500;
      if (!mayPass || tries === mostTries)
        throw new ExportError(`${this.name}: ${words}${tries > 1 ? `, after ${tries} tries` : ""}`, {
          ...(isError && { cause: answer }),
        });
      this.#ports.onTrouble(`${this.name}: ${words}; it is tried again`);
      await this.#pause(tries, isError ? 0 : Math.min(2 * longestPauseMs, answer.retryAfterMs));
    }
  }

  async #pause(tries: number, wantedMs = 0): Promise<void> {
    const { pause, random } = this.#ports;
    const doubled = Math.min(longestPauseMs, firstPauseMs * 2 ** (tries - 1));
    await pause(Math.max(wantedMs, doubled * (0.5 + random() / 2)));
  }

  #read<T>(schema: z.ZodType<T>, body: unknown): T {
    const read = schema.safeParse(body);
    if (read.success) return read.data;
    const fault = read.error.issues[0];
    throw new ExportError(
      `${this.name} does not answer as OpenSearch does (${fault?.path.join(".")}: ${fault?.message})`,
    );
  }
}

interface Sent {
  readonly operation: Operation;
  /** As in the body of a bulk request. */
  readonly lines: string;
}

interface Told {
  readonly written: Counts;
  readonly onIndexed: OnIndexed;
}

type OnIndexed = NonNullable<Parameters<ExportTarget["write"]>[1]>;

type Counts = { -readonly [Name in keyof Written]: Written[Name] };

const fieldSchema = z.record(z.string(), z.unknown());
const mappingsSchema = z.record(
  z.string(),
  z.object({ mappings: z.object({ properties: z.record(z.string(), fieldSchema).default({}) }) }),
);

/** The first field that is not as it was made, or null. Further fields are somebody else's. */
function strangeField(told: z.infer<typeof mappingsSchema>): string | null {
  // By its own name, where an alias is asked for.
  const properties = Object.values(told)[0]?.mappings.properties ?? {};
  for (const [name, made] of Object.entries(indexBody.mappings.properties))
    for (const [key, value] of Object.entries(made))
      if (String(properties[name]?.[key]) !== String(value)) return name;
  return null;
}

const outcomeSchema = z.object({
  _id: z.string().optional(),
  status: z.number().int(),
  error: z.unknown().optional(),
});
type Outcome = z.infer<typeof outcomeSchema>;

const bulkSchema = z.object({ items: z.array(z.record(z.string(), outcomeSchema)) });

const removalSchema = z.object({
  deleted: z.number().int().nonnegative(),
  version_conflicts: z.number().int().nonnegative().default(0),
  failures: z.array(z.unknown()).default([]),
});

/** Terms are made of a document just before it is sent, so that only those of one batch are held. */
async function* batchesOf(operations: readonly Operation[]): AsyncGenerator<readonly Sent[]> {
  let [batch, bytes] = [[] as Sent[], 0];
  for (const operation of operations) {
    const lines = await bulkLines(operation);
    const size = Buffer.byteLength(lines);
    if (batch.length > 0 && bytes + size > mostBulkBytes) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push({ operation, lines });
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

async function bulkLines(operation: Operation): Promise<string> {
  const { op, id, version } = operation;
  const action = JSON.stringify({ [op]: { _id: id, version, version_type: "external_gte" } });
  return op === "index" ? `${action}\n${await indexedDocument(id, operation.document)}\n` : `${action}\n`;
}

/** An untrusted certificate remains untrusted, but a failed connection may work later. */
const mayComeBack = (error: Error): boolean =>
  !/CERT|SELF_SIGNED|UNABLE_TO|TLS|SSL|RESPONSE_EXCEEDED/.test(codeOf(error));

const codeOf = (error: Error): string => String((error as { code?: unknown }).code ?? "");
