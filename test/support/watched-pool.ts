import type { Pool, PoolClient } from "pg";

/** Calls `before` with each statement of the pool's transactions before it runs. */
export function watched(pool: Pool, before: (client: PoolClient, text: string) => Promise<unknown>): Pool {
  const connect = async () => {
    const client = await pool.connect();
    const query = (statement: string | { text: string; submit?: unknown }, values?: unknown[]) => {
      const ready = before(client, typeof statement === "string" ? statement : statement.text);
      if (typeof statement === "string" || statement.submit === undefined)
        return ready.then(async () => await client.query(statement as string, values));
      // COPY is a stream and returns at once, so `before` queries on the same connection first.
      ready.catch(() => {});
      return client.query(statement as unknown as string);
    };
    return new Proxy(client, {
      get: (target, name) => {
        const value: unknown = name === "query" ? query : Reflect.get(target, name, target);
        return typeof value === "function" && name !== "query" ? value.bind(target) : value;
      },
    });
  };
  return new Proxy(pool, {
    get: (target, name) => {
      const value: unknown = name === "connect" ? connect : Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
