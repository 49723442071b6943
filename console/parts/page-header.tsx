import { Group, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { shellText } from '../text/app.ts';

interface PageHeaderProps {
  title: string;
  /** One line under the title. */
  description?: ReactNode;
  /** Buttons at the right. */
  children?: ReactNode;
}

/** Heading of a page. Also sets the title of the browser's tab. */
export function PageHeader({ title, description, children }: PageHeaderProps) {
  useDocumentTitle(`${title} · ${shellText.title}`);
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="sm">
      <div>
        <Title order={1} size="h3">
          {title}
        </Title>
        {description && (
          <Text component="div" size="sm" c="dimmed">
            {description}
          </Text>
        )}
      </div>
      <Group gap="xs">{children}</Group>
    </Group>
  );
}
