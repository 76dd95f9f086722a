/** What went wrong with a call, in the words of the server, and what can be done. */
import type { ConnectError } from '@connectrpc/connect';
import { Code } from '@connectrpc/connect';

import { texts } from './language';
import { reason, violations } from './reasons';

const text = texts({
  en: {
    unavailable: 'The server can’t be reached, or a service behind it can’t.',
    deadline: 'The server took too long.',
    unauthenticated: 'The server doesn’t know who calls: the key or token is missing, wrong or has expired. Sign in.',
    denied: 'Your rights don’t allow this.',
    invalid: 'The server refused this request.',
    missing: 'There is no such thing.',
    exhausted: 'The server has too much to do, or this is too large.',
    other: 'The call failed.',
    again: 'Try again',
    old: 'What is shown is still the answer to what was asked before.',
  },
  zh: {
    unavailable: '无法连接服务器，或其后端服务不可用。',
    deadline: '服务器响应超时。',
    unauthenticated: '服务器无法识别调用者：密钥或令牌缺失、错误或已过期。请登录。',
    denied: '您没有相应权限。',
    invalid: '服务器拒绝了该请求。',
    missing: '不存在。',
    exhausted: '服务器过载，或请求过大。',
    other: '调用失败。',
    again: '重试',
    old: '当前显示的仍是上一次查询的结果。',
  },
});

const summary = ({ code }: ConnectError): string => {
  switch (code) {
    case Code.Unavailable:
      return text('unavailable');
    case Code.DeadlineExceeded:
      return text('deadline');
    case Code.Unauthenticated:
      return text('unauthenticated');
    case Code.PermissionDenied:
      return text('denied');
    case Code.InvalidArgument:
    case Code.FailedPrecondition:
    case Code.OutOfRange:
      return text('invalid');
    case Code.NotFound:
      return text('missing');
    case Code.ResourceExhausted:
      return text('exhausted');
    default:
      return text('other');
  }
};

/** Tells of an error, and with `old` that an earlier answer is shown meanwhile; nothing without an error. */
export const Problem = ({ error, again, old }: { error: ConnectError | undefined; again?: () => void; old?: boolean }) => {
  if (error === undefined) return null;
  const wrong = violations(error);
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{summary(error)}</strong>{' '}
        <code>{reason(error) || Code[error.code]}</code>
      </p>
      {error.rawMessage !== '' && <p>{error.rawMessage}</p>}
      {wrong.length > 0 && (
        <ul>
          {wrong.slice(0, 20).map(({ field, description }) => (
            <li key={`${field} ${description}`}>
              <code>{field}</code> {description}
            </li>
          ))}
        </ul>
      )}
      {old === true && <p class="warn">{text('old')}</p>}
      {again !== undefined && (
        <button type="button" onClick={again}>
          {text('again')}
        </button>
      )}
    </div>
  );
};
