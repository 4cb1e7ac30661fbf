/**
 * PostgreSQL's binary format of COPY (its documentation, COPY, "Binary Format"): what read-copy.ts and
 * write-copy.ts share. Columns are int2, int4, int8, float4, float8 and bytea (read only), boolean, text,
 * timestamptz (written only) and inet. An inet is handed over as one 32-bit
 * word (IPv4) or four (IPv6), always a whole address without a prefix length.
 */

export const copySignature = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
/** Address families as Postgres sends them. */
export const inetFamily = { 4: 2, 6: 3 } as const;
