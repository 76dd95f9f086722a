/** Sums of money by currency, which are never added to each other. */
import type { AggregationResult } from '../../contract/souk/search/v1/aggregation_pb';
import { count, money } from '../../format';
import { Scroll } from '../../scroll';
import { shown } from '../../values';
import { text } from './words';

const sumOf = (result: AggregationResult | undefined): bigint => {
  const value = result?.kind.case === 'value' ? result.kind.value.value?.kind : undefined;
  return value?.case === 'intValue' ? value.value : 0n;
};

/** The sums of an aggregation by currency; of further currencies, how many orders they are of. */
export const sums = (result: AggregationResult | undefined): string => {
  if (result?.kind.case !== 'groups') return '';
  const { groups, otherCount } = result.kind.value;
  const told = groups.map((group) => money(sumOf(group.aggregations['sum']), shown(group.keys[0])));
  return [...told, ...(otherCount > 0n ? [text('otherCurrencies', { count: count(otherCount) })] : [])].join(' + ');
};

/** How many orders, and for how much, of each brand. */
export const BrandSums = ({ result }: { result: AggregationResult | undefined }) => {
  if (result?.kind.case !== 'groups' || result.kind.value.groups.length === 0) return null;
  const { groups, otherCount } = result.kind.value;
  return (
    <details class="panel sums" open>
      <summary>{text('sumsPerBrand')}</summary>
      <Scroll label={text('sumsPerBrand')}>
        <table>
          <thead>
            <tr>
              <th>{text('brand')}</th>
              <th class="number">{text('count')}</th>
              <th class="number">{text('sum')}</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <tr key={shown(group.keys[0])}>
                <td>{shown(group.keys[0])}</td>
                <td class="number">{count(group.count)}</td>
                <td class="number">{sums(group.aggregations['sums'])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {otherCount > 0n && <p class="quiet">{text('others', { count: count(otherCount) })}</p>}
    </details>
  );
};
