/** What messages are made of: the fields that stand in several of them, each bounded once. */
import { z } from "zod";

/** Longest URL that is accepted anywhere (RFC 9110 section 4.1 recommends at least 8000; the web rarely passes 2 KB). */
export const maxUrlLength = 2048;

export const url = z.string().min(1).max(maxUrlLength);
export const hostName = z.string().min(1).max(253);
/** A literal IP address. */
export const address = z.string().min(2).max(45);
/** A reason, for people. */
export const words = z.string().max(500);
export const leaseId = z.string().regex(/^\d{1,19}$/);
/** SHA-256, hex. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/);
/** A day: no message states a longer time. */
export const maxMilliseconds = 86_400_000;
export const milliseconds = z.number().min(0).max(maxMilliseconds);
