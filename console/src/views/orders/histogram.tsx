/** How many orders there were when: bars over time, of which some can be chosen by dragging over them. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import type { AggregationResult } from '../../contract/souk/search/v1/aggregation_pb';
import { CalendarUnit } from '../../contract/souk/search/v1/aggregation_pb';
import { count, day } from '../../format';
import { language } from '../../language';
import { Scroll } from '../../scroll';
import { colour, theme } from '../../theme';
import { text } from './words';

const HEIGHT = 150;
const DAY_MS = 86_400_000;

interface Bar {
  readonly begins: number;
  readonly count: bigint;
}

const bars = (result: AggregationResult | undefined): Bar[] => {
  if (result?.kind.case !== 'groups') return [];
  return result.kind.value.groups.flatMap(({ keys, count }) => {
    const key = keys[0]?.kind;
    return key?.case === 'timeValue' ? [{ begins: timestampMs(key.value), count }] : [];
  });
};

/** When the bar that begins then ends. */
const end = (begins: number, unit: CalendarUnit): number => {
  if (unit === CalendarUnit.MONTH) {
    const date = new Date(begins);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  }
  return begins + (unit === CalendarUnit.WEEK ? 7 : 1) * DAY_MS;
};

/** A day as the address has it. */
const written = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

export const Histogram = ({
  result,
  unit,
  onRange,
}: {
  result: AggregationResult | undefined;
  unit: CalendarUnit;
  onRange: (from: string, to: string) => void;
}) => {
  const place = useRef<HTMLDivElement>(null);
  const choose = useRef(onRange);
  choose.current = onRange;
  const all = bars(result);
  const shownAs = `${theme.value} ${language.value}`;
  const key = JSON.stringify(all.map(({ begins, count }) => [begins, Number(count)]));
  const per = unit === CalendarUnit.MONTH ? text('perMonth') : unit === CalendarUnit.WEEK ? text('perWeek') : text('perDay');

  useEffect(() => {
    const element = place.current;
    if (element === null || all.length === 0) return;
    const width = (): number => Math.max(200, element.clientWidth);
    const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') } };
    const plot = new uPlot(
      {
        width: width(),
        height: HEIGHT,
        legend: { show: false },
        // Days are days of UTC, as the server counts them.
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
        select: { show: true, left: 0, top: 0, width: 0, height: 0 },
        scales: {
          x: { time: true, range: [(all[0]?.begins ?? 0) / 1000, end(all.at(-1)?.begins ?? 0, unit) / 1000] },
          y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
        },
        axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => count(tick)) }],
        series: [
          {},
          {
            fill: colour('--accent'),
            width: 0,
            points: { show: false },
            // Each bar begins where its time does.
            paths: uPlot.paths.bars?.({ size: [0.85, 60], align: 1 }) as uPlot.Series.PathBuilder,
          },
        ],
        hooks: {
          setSelect: [
            (plot) => {
              const { left, width } = plot.select;
              if (width < 3) return;
              const [first, last] = [left, left + width].map((at) => plot.posToVal(at, 'x') * 1000) as [number, number];
              const touched = all.filter(({ begins }) => begins < last && end(begins, unit) > first);
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              const [from, to] = [touched[0], touched.at(-1)];
              if (from !== undefined && to !== undefined) choose.current(written(from.begins), written(end(to.begins, unit) - DAY_MS));
            },
          ],
        },
      },
      [all.map(({ begins }) => begins / 1000), all.map(({ count }) => Number(count))],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: width(), height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [key, shownAs, unit]);

  return (
    <>
      <div class="plot" ref={place} role="img" aria-label={`${text('overTime')}, ${per}`} />
      <details>
        <summary>
          {text('asTable')} ({per})
        </summary>
        <Scroll label={text('overTime')} short>
          <table data-times>
            <thead>
              <tr>
                <th>{text('begins')}</th>
                <th class="number">{text('count')}</th>
              </tr>
            </thead>
            <tbody>
              {all.map(({ begins, count: orders }) => (
                <tr key={begins}>
                  <td>{day(new Date(begins))}</td>
                  <td class="number">{count(orders)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </details>
    </>
  );
};
