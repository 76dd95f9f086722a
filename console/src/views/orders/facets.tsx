/** The values of a field with their counts, to choose from. */
import type { AggregationResult } from '../../contract/souk/search/v1/aggregation_pb';
import { count } from '../../format';
import { shown } from '../../values';
import type { Facet } from './wanted';
import { choose } from './wanted';
import { text } from './words';

const label = (facet: Facet, value: string): string => {
  if (facet !== 'paid') return value;
  return value === 'true' ? text('yes') : text('no');
};

export const FacetBox = ({ facet, chosen, result }: { facet: Facet; chosen: readonly string[]; result: AggregationResult | undefined }) => {
  const groups = result?.kind.case === 'groups' ? result.kind.value : undefined;
  const counted = (groups?.groups ?? []).map((group) => ({ value: shown(group.keys[0]), count: group.count }));
  // A chosen value without orders stays, so that it can be unchosen.
  const missing = chosen.filter((value) => !counted.some((one) => one.value === value)).map((value) => ({ value, count: 0n }));
  const toggle = (value: string): void =>
    choose(facet, chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]);
  return (
    <fieldset class="facet" data-facet={facet}>
      <legend>{text(facet)}</legend>
      {[...counted, ...(groups === undefined ? chosen.map((value) => ({ value, count: undefined })) : missing)].map((one) => (
        <label class="check" key={one.value}>
          <input type="checkbox" checked={chosen.includes(one.value)} onChange={() => toggle(one.value)} />
          <span class="value">{label(facet, one.value)}</span>
          <span class="number quiet">{one.count === undefined ? '' : count(one.count)}</span>
        </label>
      ))}
      {groups !== undefined && groups.otherCount > 0n && <p class="quiet">{text('others', { count: count(groups.otherCount) })}</p>}
      {chosen.length > 0 && (
        <button type="button" class="plain" aria-label={`${text('clear')}: ${text(facet)}`} onClick={() => choose(facet, [])}>
          {text('clear')}
        </button>
      )}
    </fieldset>
  );
};
