import { Alert, Anchor, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ApiError } from '../app/api-error.ts';
import { stateText } from '../text/app.ts';

interface ActionErrorProps {
  error: Error;
  /** Advice, if the error's message has none. */
  hint?: ReactNode;
}

/** Error of a dialog or button, with advice. */
export function ActionError({ error, hint }: ActionErrorProps) {
  const { status, code, requestId } = error instanceof ApiError ? error : NO_ANSWER;
  return (
    <Alert color="red" role="alert">
      <Text size="sm">{error.message}</Text>
      {hint && (
        <Text size="sm" mt={4} component="div">
          {hint}
        </Text>
      )}
      {status === 402 && (
        <Anchor component={Link} to="/wallet" size="sm">
          {stateText.toWallet}
        </Anchor>
      )}
      {code === 'FORBIDDEN' && <Text size="sm">{stateText.denied}</Text>}
      {status >= 500 && requestId && (
        <Text size="xs" c="dimmed">
          {stateText.requestId(requestId)}
        </Text>
      )}
    </Alert>
  );
}

const NO_ANSWER = { status: 0, code: '', requestId: null };
