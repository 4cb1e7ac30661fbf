/**
 * The triangle inequality among RTTs: a crawler that measured y to a target, and D to another crawler, says that
 * the other is at least |D − y| from it. Real paths violate it, so only a part of the bound is believed.
 */
export const trustInTriangle = 0.8;
