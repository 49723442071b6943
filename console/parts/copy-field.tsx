import { ActionIcon, Code, CopyButton, Group, Tooltip } from '@mantine/core';
import { Check, Copy } from 'lucide-react';
import { partText } from '../text/app.ts';

/** A value to copy, such as an id or a command. */
export function CopyField({ value, label = value }: { value: string; label?: string }) {
  return (
    <Group gap={4} wrap="nowrap">
      <Code tabIndex={-1}>{value}</Code>
      <CopyIcon value={value} label={label} />
    </Group>
  );
}

/** Several lines, such as a `curl` command. */
export function CopyBlock({ value, label }: { value: string; label: string }) {
  return (
    <Group align="flex-start" gap={4} wrap="nowrap">
      <Code block flex={1} miw={0} tabIndex={0} role="region" aria-label={label}>
        {value}
      </Code>
      <CopyIcon value={value} label={label} />
    </Group>
  );
}

/** Copies a value shown elsewhere. */
export function CopyIcon({ value, label }: { value: string; label: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => {
        const text = copied ? partText.copied : partText.copy;
        return (
          <Tooltip label={text}>
            <ActionIcon variant="subtle" color="gray" size="sm" onClick={copy} aria-label={`${text} ${label}`}>
              {copied ? <Check size={14} /> : <Copy size={14} />}
            </ActionIcon>
          </Tooltip>
        );
      }}
    </CopyButton>
  );
}
