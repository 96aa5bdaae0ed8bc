/*
 * Files in C: reads a file that the description gives, writes another one, and reads that back.
 *
 * Sessions: `files`, or those of the argument `mounts`.
 */
#include "bulkhead.h"

static int same(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

int main(void)
{
    static const char note[] = "seen by a program in C";
    char text[100];
    int files = bh_argument("mounts", text, sizeof(text)) < 0 ? bh_mount("files") : bh_mounts();
    if (files < 0)
        return 1;

    /* What the folder of the description holds. */
    int length = bh_file_read(files, "greeting", 0, text, sizeof(text) - 1);
    if (length < 0)
        return 2;
    text[length] = 0;
    bh_print(text);

    /* What is written is kept when the call returns. */
    if (bh_folder(files, "notes") < 0 || bh_file_write(files, "notes/1", 0, note, sizeof(note)) < 0)
        return 3;
    if (bh_file_size(files, "notes/1") != (int64_t)sizeof(note))
        return 4;
    length = bh_file_read(files, "notes/1", 8, text, sizeof(text));
    if (length != (int)sizeof(note) - 8 || !same(text, note + 8, (size_t)length))
        return 5;

    /* The entries of a folder. */
    length = bh_entry(files, "notes", 0, text, sizeof(text));
    if (length != 1 || text[0] != '1' || text[1] != 0 || bh_entry(files, "notes", 1, text, sizeof(text)) != BH_NOTHING)
        return 6;

    /* A failure of the service is a number. */
    if (bh_file_read(files, "nothing", 0, text, 1) != BH_SERVICE - BH_STATUS_NOT_FOUND)
        return 8;
    return bh_file_remove(files, "notes/1") < 0 ? 7 : 0;
}
