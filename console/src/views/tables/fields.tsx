/** The searchable fields of an index. */
import type { IndexField } from '../../contract/souk/search/v1/index_pb';
import { IndexFieldType } from '../../contract/souk/search/v1/index_pb';
import { Scroll } from '../../scroll';
import { analyzerText } from './analyzer';
import { text } from './words';

/** The name of a type as the server's messages have it: `GEO_POINT`. */
export const fieldType = (type: IndexFieldType): string => IndexFieldType[type] ?? String(type);

export const Fields = ({ fields, summary, marked }: { fields: readonly IndexField[]; summary: string; marked?: ReadonlySet<string> }) => (
  <details>
    <summary>{summary}</summary>
    <Scroll label={summary}>
      <table data-fields>
        <thead>
          <tr>
            <th>{text('field')}</th>
            <th>{text('type')}</th>
            <th>{text('analyzer')}</th>
            <th>{text('array')}</th>
            <th>{text('source')}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field.field} class={marked?.has(field.field) === false ? 'chosen' : undefined}>
              <td>
                <code>{field.field}</code>
              </td>
              <td>{fieldType(field.type)}</td>
              <td>{analyzerText(field.analyzer)}</td>
              <td>{field.array ? text('yes') : ''}</td>
              <td>{field.source}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  </details>
);
