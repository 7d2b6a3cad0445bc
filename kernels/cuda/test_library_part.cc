// The part that libconvlab_test.so opens.
extern "C" int PartVersion() { return VERSION; }
