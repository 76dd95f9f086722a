/**
 * A message of the contract as a form: what can be put in, and of which type it is, is read from the descriptors. It works on the
 * message's JSON, so that what is typed is kept as it was typed, whether the server will take it or not.
 */
import type { DescField, DescMessage, DescOneof } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

import type { IndexField } from '../../contract/souk/search/v1/index_pb';
import { texts } from '../../language';
import type { Json, JsonObject } from './json';
import { element, entry, isObject, member } from './json';
import { VALUE, fieldsFor, kindOfValue, namesField } from './schema';

const text = texts({
  en: { add: 'Add', more: 'Add to {name}…', remove: 'Remove {name}', none: '–', key: 'Name' },
  zh: { add: '添加', more: '添加到 {name}…', remove: '移除 {name}', none: '–', key: '名称' },
});

/** What all parts of a form know. */
export interface Known {
  readonly fields: readonly IndexField[];
  /** What is wrong, by the paths of the parts that show it. */
  readonly wrong: ReadonlyMap<string, readonly string[]>;
}

/** Members that are asked for whether they are set or not. */
const ALWAYS = new Set([
  'field',
  'value',
  'text',
  'path',
  'pattern',
  'latitude',
  'longitude',
  'distance_meters',
  'center',
  'top_left',
  'bottom_right',
  'origin',
  'descending',
  'unit',
  'interval',
  'resolution',
]);

/** Messages that are one choice, under the name of the place that they are in. */
const CLAUSES = new Set(['Query', 'Aggregation', 'Sort']);

/** Messages that JSON writes as text. */
const AS_TEXT = new Set(['google.protobuf.Timestamp', 'google.protobuf.Duration', 'google.protobuf.FieldMask']);

const NUMBERS = new Set([ScalarType.DOUBLE, ScalarType.FLOAT, ScalarType.INT32, ScalarType.UINT32]);

const words = (name: string): string => name.replaceAll('_', ' ');

const Wrong = ({ path, known, id }: { path: string; known: Known; id: string }) => {
  const told = known.wrong.get(path);
  return told === undefined ? null : (
    <p class="bad" id={id}>
      {told.join(' ')}
    </p>
  );
};

const without = (value: JsonObject, name: string): JsonObject => Object.fromEntries(Object.entries(value).filter(([other]) => other !== name));

/** What a value of a kind begins with: one of the two, or what is still to be typed. */
const emptyOf = (kind: string): JsonObject => ({ [kind]: kind === 'bool_value' ? true : '' });

/** What a member begins with. */
const begin = (field: DescField, of: JsonObject, known: Known): Json => {
  if (field.fieldKind === 'list') return [fresh(field, of, known)];
  if (field.fieldKind === 'map') return {};
  return fresh(field, of, known);
};

const fresh = (field: DescField, of: JsonObject, known: Known): Json => {
  if (field.enum !== undefined) return field.enum.values[1]?.name ?? '';
  const { message } = field;
  if (message === undefined) {
    return field.scalar === ScalarType.BOOL ? true : field.scalar !== undefined && NUMBERS.has(field.scalar) ? 0 : '';
  }
  if (AS_TEXT.has(message.typeName)) return '';
  if (message.typeName === VALUE) return emptyOf(kindOfValue(known.fields, of['field']));
  if (message.name === 'Query') return { term: {} };
  return {};
};

/** A number as JSON has it, or what was typed when it is none. */
const asNumber = (typed: string): Json => (typed.trim() !== '' && Number.isFinite(Number(typed)) ? Number(typed) : typed);

interface Part {
  readonly field: DescField;
  readonly value: Json | undefined;
  readonly path: string;
  readonly label: string;
  readonly known: Known;
  /** The message that it is in. */
  readonly of: JsonObject;
  readonly change: (next: Json | undefined) => void;
}

/** One value: a scalar, an enum, or a message. */
const One = ({ field, value, path, label, known, of, change }: Part) => {
  const id = useId();
  const told = known.wrong.has(path);
  const described = told ? { 'aria-invalid': true, 'aria-describedby': `${id}-wrong` } : {};
  const { message, scalar } = field;
  if (message !== undefined && !AS_TEXT.has(message.typeName)) {
    const inside = isObject(value) ? value : {};
    return message.typeName === VALUE ? (
      <ValueForm value={inside} path={path} label={label} known={known} of={of} change={change} />
    ) : (
      <MessageForm desc={message} value={inside} path={path} label={label} known={known} change={change} />
    );
  }
  if (field.enum !== undefined) {
    return (
      <label>
        {label}
        <select value={String(value ?? '')} {...described} onChange={(event) => change(event.currentTarget.value || undefined)}>
          <option value="">{text('none')}</option>
          {field.enum.values.slice(1).map(({ name }) => (
            <option key={name} value={name}>
              {words(name.slice((field.enum?.sharedPrefix ?? '').length).toLowerCase())}
            </option>
          ))}
        </select>
        <Wrong path={path} known={known} id={`${id}-wrong`} />
      </label>
    );
  }
  if (scalar === ScalarType.BOOL) {
    return (
      <label class="check">
        <input type="checkbox" checked={value === true} {...described} onChange={(event) => change(event.currentTarget.checked || undefined)} />
        {label}
        <Wrong path={path} known={known} id={`${id}-wrong`} />
      </label>
    );
  }
  const number = scalar !== undefined && NUMBERS.has(scalar);
  const fields = namesField(field) ? fieldsFor(field, known.fields) : [];
  return (
    <label>
      {label}
      <input
        type="text"
        inputMode={number || scalar === ScalarType.INT64 ? 'decimal' : undefined}
        list={fields.length > 0 ? `${id}-fields` : undefined}
        value={typeof value === 'string' || typeof value === 'number' ? String(value) : ''}
        {...described}
        onInput={(event) => {
          const typed = event.currentTarget.value;
          change(typed === '' ? undefined : number ? asNumber(typed) : typed);
        }}
      />
      {fields.length > 0 && (
        <datalist id={`${id}-fields`}>
          {fields.map(({ field }) => (
            <option key={field} value={field} />
          ))}
        </datalist>
      )}
      <Wrong path={path} known={known} id={`${id}-wrong`} />
    </label>
  );
};

const VALUE_KINDS = ['string_value', 'int_value', 'double_value', 'bool_value', 'time_value', 'bytes_value'];

/** A value with its type, which follows from the field that it is of. */
const ValueForm = ({
  value,
  path,
  label,
  known,
  of,
  change,
}: {
  value: JsonObject;
  path: string;
  label: string;
  known: Known;
  of: JsonObject;
  change: (next: Json | undefined) => void;
}) => {
  const id = useId();
  const kind = VALUE_KINDS.find((kind) => kind in value) ?? kindOfValue(known.fields, of['field']);
  const content = value[kind];
  const told = [path, member(path, kind)].find((path) => known.wrong.has(path)) ?? path;
  const described = known.wrong.has(told) ? { 'aria-invalid': true, 'aria-describedby': `${id}-wrong` } : {};
  const typed = (typed: string): Json => (kind === 'double_value' ? asNumber(typed) : kind === 'bool_value' ? typed === 'true' : typed);
  return (
    <span class="value">
      <label>
        {label}
        {kind === 'bool_value' ? (
          <select
            value={typeof content === 'boolean' ? String(content) : ''}
            {...described}
            onChange={(event) => change({ [kind]: event.currentTarget.value === 'true' })}
          >
            {typeof content !== 'boolean' && <option value="">{text('none')}</option>}
            <option>true</option>
            <option>false</option>
          </select>
        ) : (
          <input
            type="text"
            list={undefined}
            placeholder={kind === 'time_value' ? '2025-01-01T00:00:00Z' : undefined}
            value={typeof content === 'string' || typeof content === 'number' ? String(content) : ''}
            {...described}
            onInput={(event) => change({ [kind]: typed(event.currentTarget.value) })}
          />
        )}
        <Wrong path={told} known={known} id={`${id}-wrong`} />
      </label>
      <select
        aria-label={`${label}: type`}
        value={kind}
        onChange={(event) => {
          const next = event.currentTarget.value;
          change({ [next]: next === 'bool_value' ? true : String(content ?? '') });
        }}
      >
        {VALUE_KINDS.map((kind) => (
          <option key={kind} value={kind}>
            {words(kind.replace('_value', ''))}
          </option>
        ))}
      </select>
    </span>
  );
};

const Removable = ({ name, remove, children }: { name: string; remove: () => void; children: ComponentChildren }) => (
  <div class="removable">
    {children}
    <button type="button" aria-label={text('remove', { name })} title={text('remove', { name })} onClick={remove}>
      ×
    </button>
  </div>
);

/** A member, with its elements if it has several. */
const Member = (part: Part) => {
  const { field, value, path, label, known, of, change } = part;
  const id = useId();
  if (field.fieldKind === 'list') {
    const items = Array.isArray(value) ? value : [];
    return (
      <fieldset>
        <legend>{label}</legend>
        <Wrong path={path} known={known} id={id} />
        {items.map((item, at) => (
          <Removable
            key={at}
            name={`${label} ${at + 1}`}
            remove={() => {
              const rest = items.filter((_, other) => other !== at);
              change(rest.length === 0 ? undefined : rest);
            }}
          >
            <One
              {...part}
              value={item}
              path={element(path, at)}
              label={`${label} ${at + 1}`}
              change={(next) => change(items.map((old, other) => (other === at ? (next ?? '') : old)))}
            />
          </Removable>
        ))}
        <button type="button" onClick={() => change([...items, fresh(field, of, known)])}>
          {text('add')}
        </button>
      </fieldset>
    );
  }
  if (field.fieldKind === 'map') {
    const entries = Object.entries(isObject(value) ? value : {});
    const put = (next: [string, Json][]): void => change(Object.fromEntries(next));
    return (
      <fieldset>
        <legend>{label}</legend>
        <Wrong path={path} known={known} id={id} />
        {entries.map(([name, inside], at) => (
          <Removable key={at} name={`${label} ${name}`} remove={() => put(entries.filter((_, other) => other !== at))}>
            <label>
              {text('key')}
              <input
                type="text"
                list={undefined}
                value={name}
                onChange={(event) => {
                  const next = event.currentTarget.value;
                  if (next !== '' && !entries.some(([other]) => other === next)) put(entries.map((old, other) => (other === at ? [next, inside] : old)));
                }}
              />
            </label>
            <One
              {...part}
              value={inside}
              path={entry(path, name)}
              label={name}
              change={(next) => put(entries.map((old, other) => (other === at ? [name, next ?? {}] : old)))}
            />
          </Removable>
        ))}
        <button
          type="button"
          onClick={() => {
            let number = entries.length + 1;
            while (entries.some(([name]) => name === `a${number}`)) number += 1;
            put([...entries, [`a${number}`, fresh(field, of, known)]]);
          }}
        >
          {text('add')}
        </button>
      </fieldset>
    );
  }
  return <One {...part} />;
};

/** All of a message. */
export const MessageForm = ({
  desc,
  value,
  path,
  label,
  known,
  change,
}: {
  desc: DescMessage;
  value: JsonObject;
  path: string;
  label: string;
  known: Known;
  change: (next: JsonObject) => void;
}) => {
  const id = useId();
  const put = (name: string, next: Json | undefined): void => change(next === undefined ? without(value, name) : { ...value, [name]: next });
  const show = (field: DescField) => (
    <Member
      key={field.name}
      field={field}
      value={value[field.name]}
      path={member(path, field.name)}
      label={words(field.name)}
      known={known}
      of={value}
      change={(next) => {
        // The type of a value follows from the field that is named.
        const renamed = field.name === 'field' && typeof next === 'string' ? retyped({ ...value, field: next }, known) : undefined;
        if (renamed === undefined) put(field.name, next);
        else change(renamed);
      }}
    />
  );
  const choose = (oneof: DescOneof) => {
    const chosen = oneof.fields.find(({ name }) => name in value);
    return (
      <div key={oneof.name} class="choice">
        <label>
          {CLAUSES.has(desc.name) ? label : words(oneof.name)}
          <select
            value={chosen?.name ?? ''}
            onChange={(event) => {
              const next = oneof.fields.find(({ name }) => name === event.currentTarget.value);
              let rest = value;
              for (const { name } of oneof.fields) rest = without(rest, name);
              const kept = next === undefined || chosen === undefined ? undefined : carried(next, chosen, value[chosen.name]);
              change(next === undefined ? rest : { ...rest, [next.name]: kept ?? begin(next, value, known) });
            }}
          >
            <option value="">{text('none')}</option>
            {oneof.fields.map(({ name }) => (
              <option key={name} value={name}>
                {words(name)}
              </option>
            ))}
          </select>
        </label>
        {chosen !== undefined && show(chosen)}
      </div>
    );
  };
  const plain = desc.fields.filter(({ oneof }) => oneof === undefined);
  const isShown = ({ name }: DescField): boolean => name in value || ALWAYS.has(name);
  const hidden = plain.filter((field) => !isShown(field));
  // A clause is one choice: a frame around it would say nothing.
  const bare = CLAUSES.has(desc.name);
  const content = (
    <>
      <Wrong path={path} known={known} id={id} />
      {plain.filter(isShown).map(show)}
      {desc.oneofs.map(choose)}
      {hidden.length > 0 && (
        <select
          class="more"
          aria-label={text('more', { name: label })}
          value=""
          onChange={(event) => {
            const field = hidden.find(({ name }) => name === event.currentTarget.value);
            if (field !== undefined) put(field.name, begin(field, value, known));
          }}
        >
          <option value="">{text('more', { name: label })}</option>
          {hidden.map(({ name }) => (
            <option key={name} value={name}>
              {words(name)}
            </option>
          ))}
        </select>
      )}
    </>
  );
  if (bare) return <div class="clause">{content}</div>;
  return (
    <fieldset class={known.wrong.has(path) ? 'wrong' : undefined}>
      <legend>{label}</legend>
      {content}
    </fieldset>
  );
};

/** The values of a message whose field is another one now, in the type of that. */
const retyped = (value: JsonObject, known: Known): JsonObject => {
  const kind = kindOfValue(known.fields, value['field']);
  const one = (inside: Json): Json => {
    if (!isObject(inside)) return inside;
    const [old] = VALUE_KINDS.filter((kind) => kind in inside);
    if (old === undefined || old === kind) return inside;
    const content = inside[old] ?? '';
    return { [kind]: kind === 'bool_value' ? content === 'true' : kind === 'double_value' ? asNumber(String(content)) : String(content) };
  };
  return Object.fromEntries(
    Object.entries(value).map(([name, inside]): [string, Json] => {
      if (['value', 'gt', 'gte', 'lt', 'lte', 'missing'].includes(name)) return [name, one(inside)];
      if (name === 'values' && Array.isArray(inside)) return [name, inside.map(one)];
      return [name, inside];
    }),
  );
};

/** What of one clause another one takes over: members of the same name and type. Undefined when there are none. */
const carried = ({ message }: DescField, { message: from }: DescField, old: Json | undefined): JsonObject | undefined => {
  if (message === undefined || from === undefined || !isObject(old)) return undefined;
  const alike = (name: string): boolean => {
    const [one, other] = [message, from].map(({ fields }) => fields.find((field) => field.name === name));
    return (
      one !== undefined &&
      one.fieldKind === other?.fieldKind &&
      one.scalar === other.scalar &&
      one.message === other.message &&
      one.enum === other.enum
    );
  };
  const kept = Object.entries(old).filter(([name]) => alike(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
};
