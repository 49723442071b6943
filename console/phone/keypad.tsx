import { Text, UnstyledButton } from '@mantine/core';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { keypadText } from '../text/phone.ts';
import { callActions } from './call-actions.ts';
import { playKey } from './ringer.ts';

const KEYS = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '*', '0', '#'];
const SHOWN_KEYS = 16;

/** Telephone keypad. It takes the focus, so that keys can be typed. */
export function Keypad() {
  const pad = useRef<HTMLDivElement>(null);
  const [sent, setSent] = useState('');
  useEffect(() => pad.current?.focus(), []);
  const press = (key: string) => {
    setSent((keys) => (keys + key).slice(-SHOWN_KEYS));
    void playKey(key);
    void callActions.press(key);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !KEYS.includes(event.key)) return;
    event.preventDefault();
    press(event.key);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot take the focus
    <div
      ref={pad}
      className="keypad"
      role="group"
      aria-label={keypadText.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it takes typed keys
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <Text className="keypad-sent tabular" role="status" aria-label={keypadText.sent}>
        {sent}
      </Text>
      {KEYS.map((key) => (
        <UnstyledButton
          key={key}
          className="keypad-key"
          onClick={() => press(key)}
          aria-label={keypadText.key(key)}
          // The pad keeps the focus for typed keys.
          tabIndex={-1}
        >
          {key}
        </UnstyledButton>
      ))}
    </div>
  );
}
