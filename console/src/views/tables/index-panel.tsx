/** An index: whether it answers, how far it is, what it holds, the build under way, and what doesn't fit it. */
import { useAnswer } from '../../answer';
import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index, IndexBuild } from '../../contract/souk/search/v1/index_pb';
import { IndexBuildStep, IndexPhase } from '../../contract/souk/search/v1/index_pb';
import { bytes, count, number } from '../../format';
import { Problem } from '../../problem';
import { Scroll } from '../../scroll';
import { Fields } from './fields';
import { IndexChange } from './index-change';
import { IndexDrop } from './index-drop';
import { text } from './words';

const indexes = client(IndexService);

/** How often an index is looked at, and one that is being built, in milliseconds. */
const LOOK_MS = 5000;
const BUILD_MS = 500;

const phaseName = (phase: IndexPhase): string => {
  switch (phase) {
    case IndexPhase.SERVING:
      return text('serving');
    case IndexPhase.REBUILDING:
      return text('rebuilding');
    case IndexPhase.FAILED:
      return text('phaseFailed');
    default:
      return text('opening');
  }
};

const stepName = (step: IndexBuildStep): string => {
  if (step === IndexBuildStep.READING) return text('reading');
  return step === IndexBuildStep.CATCHING_UP ? text('catchingUp') : text('buildFailed');
};

const Build = ({ build }: { build: IndexBuild }) => {
  const [done, about] = [Number(build.rowsDone), Math.max(1, Number(build.rowsAbout))];
  return (
    <div class="panel" role="status" data-build>
      <strong>{text('build')}</strong>: {stepName(build.step)}{' '}
      <progress max={about} value={Math.min(done, about)} aria-label={text('build')} />{' '}
      {text('progress', { done: count(build.rowsDone), about: count(build.rowsAbout) })}
      {build.waiting !== '' && <p class="warn">{text('waits', { why: build.waiting })}</p>}
      {build.failure !== '' && <p class="bad">{build.failure}</p>}
    </div>
  );
};

const Misfits = ({ index }: { index: Index }) => {
  if (index.misfits === 0n) return <p class="quiet">{text('noMisfits')}</p>;
  return (
    <details>
      <summary class="warn">{text('misfits', { count: count(index.misfits) })}</summary>
      <Scroll label={text('misfits', { count: count(index.misfits) })}>
        <table data-misfits>
          <thead>
            <tr>
              <th>{text('field')}</th>
              <th>{text('reason')}</th>
              <th class="number">{text('count')}</th>
            </tr>
          </thead>
          <tbody>
            {index.misfitCounts.map((one) => (
              <tr key={`${one.field} ${one.reason}`}>
                <td>
                  <code>{one.field}</code>
                </td>
                <td>{one.reason}</td>
                <td class="number">{count(one.count)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <table>
          <thead>
            <tr>
              <th>{text('row')}</th>
              <th>{text('field')}</th>
              <th>{text('message')}</th>
            </tr>
          </thead>
          <tbody>
            {index.recentMisfits.map((one, place) => (
              <tr key={place}>
                <td>{one.id}</td>
                <td>
                  <code>{one.field}</code>
                </td>
                <td>{one.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
};

/** `first` is what was known of the index before; `onDropped` is told when it is gone. */
export const IndexPanel = ({ name, first, onDropped }: { name: string; first: Index; onDropped: () => void }) => {
  const building = (index: Index): boolean => index.build !== undefined && index.build.step !== IndexBuildStep.FAILED;
  const slow = useAnswer(name, (options) => indexes.getIndex({ index: name }, options), LOOK_MS);
  const seen = slow.value?.index ?? first;
  const fast = useAnswer(building(seen) ? name : undefined, (options) => indexes.getIndex({ index: name }, options), BUILD_MS);
  const index = building(seen) ? (fast.value?.index ?? seen) : seen;
  const seconds = Number(index.lag?.seconds ?? 0n) + (index.lag?.nanos ?? 0) / 1e9;
  const present = new Set(index.fields.map((field) => field.field));
  const bad = index.phase === IndexPhase.FAILED || index.phase === IndexPhase.BUILDING;
  return (
    <section class="panel part" aria-label={text('index', { name })}>
      <h3>{text('index', { name })}</h3>
      <Problem error={slow.error} again={slow.again} />
      <dl class="facts">
        <dt>{text('phase')}</dt>
        <dd class={bad ? 'bad' : 'good'}>{phaseName(index.phase)}</dd>
        <dt>{text('documents')}</dt>
        <dd data-documents>{count(index.documents)}</dd>
        <dt>{text('size')}</dt>
        <dd>{bytes(index.bytes)}</dd>
        <dt>{text('segments')}</dt>
        <dd>{count(index.segments)}</dd>
        <dt>{text('sequence')}</dt>
        <dd>{count(index.sequence)}</dd>
        <dt>{text('lag')}</dt>
        <dd>{index.lagChanges === 0n ? text('upToDate') : text('lagText', { changes: count(index.lagChanges), seconds: number(seconds, 1) })}</dd>
        <dt>{text('weight')}</dt>
        <dd>{count(index.weight)}</dd>
        {index.stalled !== '' && [<dt key="stalled">{text('stalled')}</dt>, <dd key="why" class="warn">{index.stalled}</dd>]}
        {index.logHeld !== '' && [<dt key="held">{text('held')}</dt>, <dd key="what" class="warn">{index.logHeld}</dd>]}
        {index.failure !== '' && [<dt key="failure">{text('failure')}</dt>, <dd key="of" class="bad">{index.failure}</dd>]}
      </dl>
      {index.build !== undefined && <Build build={index.build} />}
      <Fields fields={index.fields} summary={text('fields', { count: count(index.fields.length) })} />
      {index.fieldsToBe.length > 0 && (
        <Fields fields={index.fieldsToBe} marked={present} summary={text('fieldsToBe', { count: count(index.fieldsToBe.length) })} />
      )}
      <Misfits index={index} />
      <IndexChange index={index} onChanged={slow.again} />
      <IndexDrop name={name} onDropped={onDropped} />
    </section>
  );
};
