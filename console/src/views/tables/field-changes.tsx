/** Changes of an index's fields, put together one after the other. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { useState } from 'preact/hooks';

import type { IndexChangeSchema, IndexField } from '../../contract/souk/search/v1/index_pb';
import { IndexFieldType } from '../../contract/souk/search/v1/index_pb';
import type { Choice } from './analyzer';
import { AnalyzerChoice, CHOICE, analyzer } from './analyzer';
import { fieldType } from './fields';
import { text } from './words';

type ChangeInit = MessageInitShape<typeof IndexChangeSchema>;
type What = 'add' | 'drop' | 'set';

/** Types that a field which is added can have. */
const TYPES = [
  IndexFieldType.KEYWORD,
  IndexFieldType.TEXT,
  IndexFieldType.LONG,
  IndexFieldType.DOUBLE,
  IndexFieldType.BOOLEAN,
  IndexFieldType.DATE,
  IndexFieldType.GEO_POINT,
];

/** A change, and how it is told. */
export interface Noted {
  readonly told: string;
  readonly change: ChangeInit;
}

/** `fields` are those that there are before the changes. */
export const FieldChanges = ({
  fields,
  noted,
  onNoted,
}: {
  fields: readonly IndexField[];
  noted: readonly Noted[];
  onNoted: (noted: readonly Noted[]) => void;
}) => {
  const [what, setWhat] = useState<What>('add');
  const [field, setField] = useState('');
  const [type, setType] = useState(IndexFieldType.KEYWORD);
  const [source, setSource] = useState('');
  const [choice, setChoice] = useState<Choice>(CHOICE);

  const texts = fields.filter((one) => one.type === IndexFieldType.TEXT).map((one) => one.field);
  const choices = what === 'set' ? texts : fields.map((one) => one.field);
  const named = what === 'add' ? field.trim() : (choices.find((one) => one === field) ?? choices[0] ?? '');

  const note = (event: Event): void => {
    event.preventDefault();
    if (named === '') return;
    const change = (): ChangeInit => {
      if (what === 'drop') return { kind: { case: 'dropField', value: { field: named } } };
      if (what === 'set') return { kind: { case: 'setAnalyzer', value: { field: named, analyzer: analyzer(choice) } } };
      const isText = type === IndexFieldType.TEXT;
      return { kind: { case: 'addField', value: { field: named, type, source: source.trim(), ...(isText && { analyzer: analyzer(choice) }) } } };
    };
    const details = what === 'add' ? `${fieldType(type)}${source.trim() === '' ? '' : ` ← ${source.trim()}`}` : what === 'set' ? choice.kind : '';
    onNoted([...noted, { told: `${text(what)}: ${named} ${details}`.trim(), change: change() }]);
    setField('');
  };

  return (
    <>
      <form onSubmit={note}>
        <div class="row">
          <label>
            {text('what')}
            <select value={what} onChange={(event) => setWhat(event.currentTarget.value as What)}>
              <option value="add">{text('add')}</option>
              <option value="drop">{text('drop')}</option>
              <option value="set">{text('set')}</option>
            </select>
          </label>
          {what === 'add' ? (
            <>
              <label>
                {text('name')}
                <input required value={field} onInput={(event) => setField(event.currentTarget.value)} />
              </label>
              <label>
                {text('type')}
                <select value={type} onChange={(event) => setType(Number(event.currentTarget.value))}>
                  {TYPES.map((one) => (
                    <option key={one} value={one}>
                      {fieldType(one)}
                    </option>
                  ))}
                </select>
              </label>
              <label>
                {text('source')}
                <input value={source} title={text('sourceHint')} onInput={(event) => setSource(event.currentTarget.value)} />
              </label>
            </>
          ) : (
            <label>
              {text('field')}
              <select value={named} onChange={(event) => setField(event.currentTarget.value)}>
                {choices.map((one) => (
                  <option key={one} value={one}>
                    {one}
                  </option>
                ))}
              </select>
            </label>
          )}
          {(what === 'set' || (what === 'add' && type === IndexFieldType.TEXT)) && <AnalyzerChoice choice={choice} onChoice={setChoice} />}
          <button type="submit">{text('note')}</button>
        </div>
      </form>
      {noted.length > 0 && (
        <>
          <h4>{text('pending')}</h4>
          <ol>
            {noted.map(({ told }, place) => (
              <li key={`${place} ${told}`}>
                {told}{' '}
                <button type="button" class="plain" onClick={() => onNoted(noted.filter((_, other) => other !== place))}>
                  {text('remove')}
                </button>
              </li>
            ))}
          </ol>
        </>
      )}
    </>
  );
};
