/** A chart of a few lines over time. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import { language } from '../../language';
import { colour, theme } from '../../theme';

const HEIGHT = 150;

/** The shortest time that the axis shows, in seconds. */
const SHORTEST_S = 60;

/** The colours of lines, by the style sheet. */
const COLOURS = ['--accent', '--warn', '--bad', '--good', '--quiet', '--text'];

/** Lines that have the colour of an earlier one are dashed. */
const isDashed = (at: number): boolean => at >= COLOURS.length;

export interface Line {
  readonly label: string;
  /** A value for each time; undefined leaves a gap. */
  readonly values: readonly (number | undefined)[];
}

/** `times` are in milliseconds since the epoch; `show` writes a value on the axis. */
export const Chart = ({
  title,
  times,
  lines,
  show,
}: {
  title: string;
  times: readonly number[];
  lines: readonly Line[];
  show: (value: number) => string;
}) => {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const labels = lines.map(({ label }) => label).join('\n');
  const latest = useRef({ times, lines });
  latest.current = { times, lines };
  const data = (): uPlot.AlignedData => [
    latest.current.times.map((at) => at / 1000),
    ...latest.current.lines.map(({ values }) => values.map((value) => value ?? null)),
  ];
  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 } };
    const drawn = new uPlot(
      {
        width: Math.max(box.clientWidth, 100),
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          // One moment alone would be drawn in the middle of years.
          x: { range: (_, first, last) => [Math.min(first, last - SHORTEST_S), last] },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
        },
        axes: [axis, { ...axis, size: 76, values: (_, values) => values.map(show) }],
        series: [
          {},
          ...labels.split('\n').map((label, at) => ({
            label,
            stroke: colour(COLOURS[at % COLOURS.length] ?? '--accent'),
            width: 1.5,
            points: { show: false },
            ...(isDashed(at) && { dash: [4, 4] }),
          })),
        ],
      },
      data(),
      box,
    );
    plot.current = drawn;
    const watcher = new ResizeObserver(() => drawn.setSize({ width: Math.max(box.clientWidth, 100), height: HEIGHT }));
    watcher.observe(box);
    return () => {
      watcher.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [labels, theme.value, language.value]);
  useEffect(() => plot.current?.setData(data()), [times, lines]);
  const last = lines.map(({ label, values }) => {
    const value = values.at(-1);
    return `${label} ${value === undefined ? '–' : show(value)}`;
  });
  return (
    <figure class="chart panel">
      <figcaption>
        <strong>{title}</strong>
        {lines.map(({ label }, at) => (
          <span key={label}>
            <i class={isDashed(at) ? 'key dashed' : 'key'} style={{ color: `var(${COLOURS[at % COLOURS.length]})` }} />
            {label}
          </span>
        ))}
      </figcaption>
      <div ref={place} role="img" aria-label={`${title}: ${last.join(', ')}`} />
    </figure>
  );
};
