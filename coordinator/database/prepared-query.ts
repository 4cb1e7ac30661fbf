/**
 * Statements that run all day, prepared: each connection parses and plans them once. Planning is what they mostly cost
 * otherwise, since every table that grows with the web has a plan for each of its parts.
 */
import { createHash } from "node:crypto";
import type { PoolClient, QueryResult, QueryResultRow } from "pg";

/** A connection keeps what it has prepared until it ends: texts beyond so many are run as they are. */
const mostTexts = 500;

/** `text` is one of a few, which differ in nothing that users give. */
export async function prepared<Row extends QueryResultRow>(
  client: PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<QueryResult<Row>> {
  const name = nameOf(text);
  return await client.query<Row>({ ...(name === null ? {} : { name }), text, values: [...values] });
}

const names = new Map<string, string>();

/** A connection refuses another text under a name that it knows, so the name is made of the text. */
function nameOf(text: string): string | null {
  const known = names.get(text);
  if (known !== undefined) return known;
  if (names.size >= mostTexts) return null;
  const name = `nearcrawl-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
  names.set(text, name);
  return name;
}
