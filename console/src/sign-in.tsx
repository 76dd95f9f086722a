/** Signing in with a key or a token, where the server asks for one. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { texts } from './language';
import { asking, become, credentials } from './session';

const text = texts({
  en: {
    open: 'Sign in',
    out: 'Sign out',
    title: 'Who calls?',
    why: 'The server asks who calls. A key or a token is held in the memory of this page alone, and is gone when it is closed or loaded again.',
    kind: 'What it is',
    key: 'API key',
    token: 'Token (JWT)',
    secret: 'Key or token',
    cancel: 'Cancel',
    unsendable: 'A key or token has letters, digits and signs of ASCII alone, and no space.',
  },
  zh: {
    open: '登录',
    out: '退出',
    title: '您是谁？',
    why: '服务器需要知道调用者身份。密钥或令牌只保存在本页面的内存中，关闭或重新加载页面后即消失。',
    kind: '类型',
    key: 'API 密钥',
    token: '令牌（JWT）',
    secret: '密钥或令牌',
    cancel: '取消',
    unsendable: '密钥或令牌只能包含 ASCII 字母、数字和符号，不能有空格。',
  },
});

/** What a header can carry, and every key and token is. */
const SENDABLE = /^[\x21-\x7e]+$/;

export const SignIn = () => {
  const dialog = useRef<HTMLDialogElement>(null);
  const [kind, setKind] = useState<'key' | 'token'>('key');
  const [secret, setSecret] = useState('');
  const [wrong, setWrong] = useState(false);
  const wanted = asking.value === 'yes';
  useEffect(() => {
    if (wanted && dialog.current?.open === false) dialog.current.showModal();
  }, [wanted]);
  const submit = (event: Event): void => {
    event.preventDefault();
    const sent = secret.trim();
    setWrong(!SENDABLE.test(sent));
    if (!SENDABLE.test(sent)) return;
    become({ kind, secret: sent });
    dialog.current?.close();
  };
  // Closed without a key: the page goes on with what nobody may see, and doesn't ask each time that it is refused.
  const closed = (): void => {
    setSecret('');
    setWrong(false);
    if (asking.value === 'yes') asking.value = 'declined';
  };
  return (
    <>
      {credentials.value === undefined ? (
        <button type="button" onClick={() => dialog.current?.showModal()}>
          {text('open')}
        </button>
      ) : (
        <button type="button" onClick={() => become(undefined)}>
          {text('out')}
        </button>
      )}
      <dialog ref={dialog} aria-labelledby="sign-in-title" onClose={closed}>
        <form onSubmit={submit}>
          <h2 id="sign-in-title">{text('title')}</h2>
          <p>{text('why')}</p>
          <label>
            {text('kind')}
            <select value={kind} onChange={(event) => setKind(event.currentTarget.value === 'token' ? 'token' : 'key')}>
              <option value="key">{text('key')}</option>
              <option value="token">{text('token')}</option>
            </select>
          </label>
          <label>
            {text('secret')}
            <input
              type="password"
              autocomplete="off"
              required
              value={secret}
              aria-invalid={wrong}
              onInput={(event) => setSecret(event.currentTarget.value)}
            />
          </label>
          {wrong && (
            <p class="bad" role="alert">
              {text('unsendable')}
            </p>
          )}
          <div class="row">
            <button class="main" type="submit">
              {text('open')}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              {text('cancel')}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
};
