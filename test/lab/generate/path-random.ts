/**
 * Chance without a sequence: every node of the generated hierarchy has a path, a 32-bit number made from its
 * parent's path, and every draw at a node is a function of its path and of what is drawn. So a subtree comes
 * out the same whether or not the rest was made before it, and a change to one object moves no other.
 */
import { mix32 } from "#core/random";

/** A 32-bit number for what is drawn (`purpose`) at this path. Two purposes give unrelated numbers. */
export function draw(path: number, purpose: number): number {
  return mix32(mix32(path ^ 0x3c6ef372) ^ Math.imul(purpose + 1, 0x9e3779b1));
}

/** Uniform in [0, 1). */
export function fraction(path: number, purpose: number): number {
  return draw(path, purpose) / 4_294_967_296;
}

/** A whole number from 0 up to, not including, `limit`. */
export function below(path: number, purpose: number, limit: number): number {
  return Math.floor((draw(path, purpose) / 4_294_967_296) * limit);
}
