-- So that every run starts with the same amount of unwritten pages, and none meets another's checkpoint.
checkpoint;
