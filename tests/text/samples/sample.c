#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX(a, b) ((a) > (b) ? \
                   (a) : (b))

struct buf { char *data; size_t len, cap; };

static int buf_push(struct buf *b, const char *s, size_t n)
{
	if (b->len + n + 1 > b->cap) {
		size_t cap = MAX(b->cap * 2, b->len + n + 1);
		char *p = realloc(b->data, cap);
		if (!p)
			return -1;
		b->data = p;
		b->cap = cap;
	}
	memcpy(b->data + b->len, s, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

/* reads all of stdin;
 * returns 0 on success */
int main(void)
{
	struct buf b = {0};
	char chunk[4096];
	size_t n;

	while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0)
		if (buf_push(&b, chunk, n) != 0) { perror("push"); return 1; }
	printf("%zu bytes, 0x%08lx\n", b.len, (unsigned long)b.len);//done
	free(b.data);
	return 0;
}
