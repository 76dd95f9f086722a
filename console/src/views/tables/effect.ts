/** What a change of an index costs. */
import type { IndexUpdateEffect } from '../../contract/souk/search/v1/index_pb';
import { bytes, count } from '../../format';
import { text } from './words';

/** The cost of a change of an index that answers meanwhile. */
export const costs = (effect: IndexUpdateEffect | undefined): string =>
  effect?.instant ? text('instant') : text('costs', { rows: count(effect?.rowsAbout ?? 0n), bytes: bytes(effect?.bytesAbout ?? 0n) });

/** The cost of an index that is built for the first time. */
export const buildCosts = (effect: IndexUpdateEffect | undefined): string =>
  text('buildCosts', { rows: count(effect?.rowsAbout ?? 0n), bytes: bytes(effect?.bytesAbout ?? 0n) });
